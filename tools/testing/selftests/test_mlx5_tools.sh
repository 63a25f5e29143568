#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs that others wrote, on two simulated ConnectX: perftest and the pingpongs of
# rdma-core between them, unload and reload of the drivers, also under traffic.

set -u
tests=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

result() {
	local status=$1 name=$2
	tests=$((tests + 1))
	if [ "$status" = 0 ]; then
		echo "ok $tests - $name"
	else
		echo "not ok $tests - $name"
		sed 's/^/# /' "$work"/{server,client}.log 2> /dev/null
		failed=$((failed + 1))
	fi
}

# listens PORT: whether a server waits there
listens() {
	local hex
	hex=$(printf '%04X' "$1")
	grep -q ":$hex 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 2> /dev/null
}

# between NAME PORT PROGRAM [ARGUMENT]...: a server on mlx5_0, a client on mlx5_1
between() {
	local name=$1 port=$2 server status=1 n=0
	shift 2
	timeout 60 "$@" -d mlx5_0 -p "$port" > "$work/server.log" 2>&1 &
	server=$!
	until listens "$port" || ! kill -0 $server 2> /dev/null || [ $n = 200 ]; do
		sleep 0.1
		n=$((n + 1))
	done
	timeout 60 "$@" -d mlx5_1 -p "$port" 127.0.0.1 > "$work/client.log" 2>&1 && status=0
	wait $server || status=1
	result $status "$name"
}

ports_active() {
	[ "$(cat /sys/class/infiniband/mlx5_*/ports/1/state 2> /dev/null | grep -c ACTIVE)" = 2 ]
}

reload() {
	local n=0
	modprobe -r mlx5_ib > "$work/client.log" 2>&1 &&
		modprobe -r mlx5_core >> "$work/client.log" 2>&1 || return 1
	[ ! -e /sys/class/infiniband/mlx5_0 ] || return 1
	modprobe mlx5_ib >> "$work/client.log" 2>&1 || return 1
	until ports_active; do
		[ $n -lt 600 ] || return 1
		sleep 0.1
		n=$((n + 1))
	done
}

if ! ports_active; then
	echo '1..0 # SKIP needs two simulated adapters'
	exit 0
fi

traffic() {
	between "$1: ib_write_bw" 18601 ib_write_bw -s 65536 -n 200 -F
	between "$1: ib_read_bw" 18602 ib_read_bw -s 65536 -n 200 -F
	between "$1: ib_send_bw" 18603 ib_send_bw -s 65536 -n 200 -F
	between "$1: ib_atomic_bw" 18604 ib_atomic_bw -n 200 -F
	between "$1: ib_write_lat, inline" 18605 ib_write_lat -s 64 -I 64 -n 100 -F
	between "$1: ib_send_lat with events" 18606 ib_send_lat -s 4096 -e -n 100 -F
}

traffic 'first load'
between 'first load: ib_write_bw both ways, 8 queue pairs' 18607 ib_write_bw -b -q 8 -s 65536 -n 200 -F
between 'first load: ibv_rc_pingpong with events' 18608 ibv_rc_pingpong -e -n 200
between 'first load: ibv_rc_pingpong on page faults' 18609 ibv_rc_pingpong -o -n 200
between 'first load: ibv_srq_pingpong' 18610 ibv_srq_pingpong -n 200
between 'first load: ibv_xsrq_pingpong' 18611 ibv_xsrq_pingpong -n 200
between 'first load: ibv_ud_pingpong' 18612 ibv_ud_pingpong -n 200

reload
result $? 'unload and load'
traffic 'second load'

# A server that still has its objects when its device goes
ib_send_bw -d mlx5_0 -p 18620 -F > "$work/server.log" 2>&1 &
server=$!
n=0
until listens 18620 || [ $n = 200 ]; do
	sleep 0.1
	n=$((n + 1))
done
for device in /sys/bus/pci/drivers/mlx5_core/0*; do
	[ "$(cat "$device"/infiniband/*/ports/1/lid)" = 0x1 ] && first=${device##*/}
done
timeout 60 sh -c "echo $first > /sys/bus/pci/drivers/mlx5_core/unbind"
result $? 'unbind a device that is in use'
kill -9 $server 2> /dev/null
wait $server 2> /dev/null
timeout 60 sh -c "echo $first > /sys/bus/pci/drivers/mlx5_core/bind"
result $? 'bind it again'
n=0
until ports_active || [ $n = 600 ]; do
	sleep 0.1
	n=$((n + 1))
done
ports_active
result $? 'both ports are active again'
traffic 'bound again'

reload
result $? 'unload and load again'

echo "1..$tests"
[ $failed = 0 ]
