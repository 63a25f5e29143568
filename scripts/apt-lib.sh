# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# apt with lists and state of its own, for scripts that fetch from Debian; to be
# sourced.  The system's apt is left alone, and signatures are checked against
# Debian's keyring.
#
#   cache                      folder for all that is fetched and built
#   die MESSAGE                is the script's; it ends it
#   apt_setup STATE SUITES     read the lists of SUITES (a,b,...); then
#   apt-get "${apt_opts[@]}" and apt-cache "${apt_opts[@]}" work on them
#
# MIRROR in the environment replaces the mirror, which is otherwise the one that
# this machine's apt uses; MIRROR_SECURITY the one of *-security, MIRROR-security.

# shellcheck disable=SC2034 # the scripts' own
cache=${RDMA_DMABUF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdma-dmabuf}
apt_keyring=/usr/share/keyrings/debian-archive-keyring.gpg
apt_opts=()

# The mirror of a Debian archive, from this machine's own apt configuration:
# the first source that serves a Debian suite; *-security has a path of its own.
apt_mirror_of() {
	local want=$1
	if [ -n "${MIRROR:-}" ]; then
		case $want in
		*-security) echo "${MIRROR_SECURITY:-${MIRROR%/}-security}";;
		*) echo "$MIRROR";;
		esac
		return
	fi
	# shellcheck disable=SC2016 # apt's variables
	apt-get indextargets --format '$(SITE) $(SUITE) $(CODENAME) $(ORIGIN) $(LABEL)' 2> /dev/null |
	awk -v sec="$(case $want in *-security) echo 1;; esac)" '
		$4 == "Debian" { is = ($0 ~ /Debian-Security/); if (is == (sec != "")) { print $1; exit } }'
}

apt_setup() {
	local state=$1 suites=$2 suite mirror out
	command -v apt-get > /dev/null || die "apt-get is missing"
	[ -e $apt_keyring ] || die "$apt_keyring is missing (package debian-archive-keyring)"
	mkdir -p "$state"/{lists/partial,cache/archives/partial}
	: > "$state/sources.list"
	for suite in ${suites//,/ }; do
		mirror=$(apt_mirror_of "$suite")
		[ -n "$mirror" ] || die "no Debian mirror for suite $suite in this machine's apt configuration; give MIRROR=URL"
		echo "deb [signed-by=$apt_keyring] $mirror $suite main" >> "$state/sources.list"
		echo "deb-src [signed-by=$apt_keyring] $mirror $suite main" >> "$state/sources.list"
	done
	apt_opts=(-q -o "Dir::State=$state" -o "Dir::State::Lists=$state/lists"
		-o "Dir::State::status=/dev/null" -o "Dir::Cache=$state/cache"
		-o "Dir::Etc::SourceList=$state/sources.list" -o "Dir::Etc::SourceParts=/dev/null"
		-o "APT::Architecture=amd64" -o "APT::Sandbox::User=root"
		-o "APT::Install-Recommends=false")
	if ! out=$(apt-get "${apt_opts[@]}" -o APT::Update::Error-Mode=any update 2>&1); then
		die "suite not reached: $(grep -m1 -E '^(E|Err|W)' <<< "$out"); MIRROR= replaces the mirror"
	fi
}
