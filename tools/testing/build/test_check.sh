#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Does scripts/check count right, and can it fail?  It runs in a scratch tree whose
# builds and tests are one-liners.  Prints TAP.

set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
# shellcheck source=tools/testing/build/tap.sh
. "$here/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/scripts" "$work/tree/tools/testing/vm"
cd "$work/tree" || exit 1

cp "$top/scripts/check" scripts/
for script in scripts/{setup,base-kernel,build-modules} tools/testing/vm/{make-root,build-debug-kernel}; do
	printf '#!/bin/sh\necho "$0 $*" >> "%s/calls"\n[ ! -e "%s/broken-%s" ]\n' \
		"$work" "$work" "$(basename "$script")" > "$script"
	chmod +x "$script"
done
printf '# lines\n5.10 a b c\n6.1 a b c\n7.2 a b c\n' > scripts/lines
# A guest that runs its command here.
cat > tools/testing/vm/run <<- 'EOT'
	#!/bin/sh
	echo "$0 $*" >> ../calls
	while [ "$1" != -- ]; do shift; done
	shift
	exec "$@"
EOT
chmod +x tools/testing/vm/run
printf 'tools:\n\t@:\n' > Makefile
printf '/build/\n' > .gitignore
git init -q
git config user.name Test
git config user.email test@example.org

# conf LINE...: name, level, where, command; minutes and kernel are the same for all.
conf() {
	printf '%s\n' "$@" | sed 's/^\([^|]*\)|\([^|]*\)|\([^|]*\)|\(.*\)/\1  \2  1  \3  debug  -  \4/' > tools/testing/tests.conf
	git add -A
	git commit -q --allow-empty -m conf
}
check() { scripts/check "$@" > "$work/log" 2>&1; }
last() { tail -n 1 "$work/log"; }
says() { grep -qF -- "$1" "$work/log"; ok $? "  and says '$1'"; }

# A failure that is known has a directive of TAP for it behind its name.
conf 'one|check|host|echo "ok 1 - a"; echo "ok 2 - b # SKIP no such device"; echo "not ok 3 - e # TODO old"; echo 1..3' \
	'two|check|guest|echo "ok 1 - c"; echo 1..1' \
	'three|check|host|echo "1..0 # SKIP nothing to do"' \
	'four|all|host|echo "ok 1 - d"; echo 1..1'
check
is $? 0 'all is well'
is "$(last)" '2 passed, 0 failed, 3 skipped' '  the count'
says 'e # TODO old'
says 'no such device'
says 'nothing to do'
says 'left to make check-all: four'

conf 'one|check|host|echo "ok 1 - a"; echo "not ok 2 - b"; echo "# because"; echo 1..2; exit 1' \
	'two|check|guest|echo "ok 1 - c"; exit 124' \
	'three|check|host|echo nothing'
check
is $? 1 'a test failed, a guest had a splat, a run had no test'
is "$(last)" '2 passed, 3 failed, 0 skipped' '  the count'
says 'not ok 2 - b'
says '# because'
says 'status 124'
says 'not a single test'

conf 'one|check|guest|echo "ok 1 - a"' 'two|check|host|echo "ok 1 - b"'
touch "$work/broken-build-debug-kernel"
check
is $? 1 'a build failed'
is "$(last)" '0 passed, 3 failed, 0 skipped' '  the count: it, and what could not run'
says 'debug kernel: FAILED'
rm "$work/broken-build-debug-kernel"
touch "$work/broken-setup"
check
is $? 1 'the set-up failed'
rm "$work/broken-setup"

conf 'one|check|host|echo "ok 1 - a"; sleep 100 & wait'
sed -i 's/  1  /  0.05  /' tools/testing/tests.conf
check
is $? 1 'a run hangs'
is "$(last)" '1 passed, 1 failed, 0 skipped' '  the count'
says 'no end within'

conf 'one|check|host|echo "ok 1 - a"; echo ran >> ../ran' 'two|all|host|test -e ../fixed && echo "ok 1 - b"'
check --all
is $? 1 'check --all, one run failed'
touch "$work/fixed"
check --all
is $? 0 'once more, when it is mended'
is "$(last)" '2 passed, 0 failed, 0 skipped' '  the count'
is "$(wc -l < "$work/ran")" 1 '  what had passed is not run again'
grep -q '^two  *1 ' Documentation/results/*.rst
ok $? '  the table is written'
git add -A
git commit -q -m results
check --all
is "$(wc -l < "$work/ran")" 1 '  nor is it when the table is committed'
echo '# changed' >> Makefile
check --all
is "$(wc -l < "$work/ran")" 2 '  but it is when the tree has changed'
check --only two
is "$(last)" '1 passed, 0 failed, 0 skipped' 'one run only'
check --only five
is $? 2 'a run that is not there'
says five

# calls: what was called since the last time, without what every run needs and without
# a guest's options.
calls() {
	sed 's# --out .*##; s#.*/##; s/ *$//' "$work/calls" |
		grep -vx 'setup\|base-kernel\|make-root' | sort
	rm "$work/calls"
}
kernels() {
	conf 'one|check|guest|echo "ok 1 - a"' 'two|check|guest|echo "ok 1 - b"'
	sed -i "/^one/s/  debug  -/  $1  -/; /^two/s/  debug  -/  $2  -/" tools/testing/tests.conf
	rm -f "$work/calls"
	check
}
kernels stock stock
is "$(calls)" 'build-modules --flavour stock
run --kernel stock
run --kernel stock' 'only what a run needs is built'
kernels 6.1:stock stock
is "$(calls)" 'base-kernel --line 6.1
build-modules --flavour stock
build-modules --line 6.1 --flavour stock
run --kernel stock
run --kernel stock --line 6.1' '  of other lines as well'
kernels 7.2:debug 6.1:stock
is "$(calls)" 'base-kernel --line 6.1
base-kernel --line 7.2
build-debug-kernel --line 7.2
build-modules --line 6.1 --flavour stock
build-modules --line 7.2 --flavour debug
run --kernel debug --line 7.2
run --kernel stock --line 6.1' '  and debug kernels'
touch "$work/broken-build-debug-kernel"
kernels 7.2:debug stock
is "$(last)" '1 passed, 2 failed, 0 skipped' '  one that fails keeps back only what needs it'
says 'debug kernel 7.2: FAILED'
rm "$work/broken-build-debug-kernel"
kernels 6.3:stock stock
is $? 2 'a line that is not there'
says "one in tools/testing/tests.conf: no kernel '6.3:stock'"
KDIR=/ check
is $? 2 'KDIR, which is not for tests'
tap_done
