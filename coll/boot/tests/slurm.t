#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Ranks that Slurm's srun started find each other: by its variables, and by PMIx. Slurm is
# this test's own: a controller and a node that it starts, on ports and in a folder of its
# own, and ends. It needs slurmctld, slurmd and srun (Debian: slurmctld, slurmd and
# slurm-client), from where they are installed, or, unpacked (dpkg -x), from below the
# folder WEFT_TEST_SLURM. Nothing of a Slurm that runs here is touched.
set -u
top=${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}
WEFT_TOP_SRCDIR=$top
# shellcheck source=tests/tap.sh
. "$top/tests/tap.sh" || exit 99

root=${WEFT_TEST_SLURM-}
plugins=
PATH=$root/usr/bin:$root/usr/sbin:$PATH:/usr/sbin
for d in "$root"/usr/lib/*/slurm-wlm "$root"/usr/lib/*/slurm "$root"/usr/lib64/slurm; do
	[ ! -e "$d/auth_none.so" ] || plugins=$d
done
tool() { # NAME: as it is called here, or "": Debian's packages add -wlm
	command -v "$1" || command -v "$1-wlm"
}
for t in slurmctld slurmd slurmstepd; do
	[ -n "$(tool $t)" ] || skip_all "no $t (Debian: slurmctld, slurmd, slurm-client)"
done
command -v srun >/dev/null || skip_all "no srun (Debian: slurm-client)"
[ -n "$plugins" ] || skip_all "Slurm has no plugin auth/none here"
[ -z "$root" ] || export LD_LIBRARY_PATH=$plugins

unset WEFT_RANK WEFT_SIZE WEFT_ROOT WEFT_ROOT_FD WEFT_JOB "${!PMIX_@}" "${!OMPI_@}" \
	"${!SLURM_@}" "${!PMI_@}"
host=$(hostname -s)
conf() { # PORT
	mkdir -p "$tmp/state" "$tmp/spool"
	cat <<-END
		ClusterName=weft
		SlurmctldHost=$host(127.0.0.1)
		SlurmUser=$(id -un)
		SlurmdUser=$(id -un)
		AuthType=auth/none
		CredType=cred/none
		ProctrackType=proctrack/pgid
		TaskPlugin=task/none
		SwitchType=switch/none
		MpiDefault=none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		SelectType=select/linear
		PluginDir=$plugins
		StateSaveLocation=$tmp/state
		SlurmdSpoolDir=$tmp/spool
		SlurmctldPidFile=$tmp/slurmctld.pid
		SlurmdPidFile=$tmp/slurmd.pid
		SlurmctldPort=$1
		SlurmdPort=$(($1 + 1))
		ReturnToService=2
		SlurmdParameters=config_overrides
		NodeName=$host NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
		PartitionName=p Nodes=$host Default=YES MaxTime=INFINITE State=UP
	END
}

daemons=()
daemons_end() {
	local p

	for p in "${daemons[@]}"; do
		kill "$p" 2>/dev/null
	done
	wait
	daemons=()
}
trap '[ $BASHPID = $$ ] && { daemons_end; rm -rf "$tmp"; }' EXIT

# Whether both are there and the node takes work, on these ports.
slurm_start() { # PORT
	local i

	conf "$1" >"$tmp/slurm.conf"
	"$(tool slurmctld)" -D -c >"$tmp/slurmctld" 2>&1 &
	daemons+=($!)
	"$(tool slurmd)" -D -d "$(tool slurmstepd)" >"$tmp/slurmd" 2>&1 &
	daemons+=($!)
	for ((i = 0; i < 120; i++)); do
		[ "$(timeout 20 sinfo -h -o %t 2>/dev/null)" != idle ] || return 0
		kill -0 "${daemons[0]}" 2>/dev/null || break
		kill -0 "${daemons[1]}" 2>/dev/null || break
		sleep 0.25
	done
	daemons_end
	return 1
}

export SLURM_CONF=$tmp/slurm.conf
up=no
for _ in 1 2 3; do
	[ $up = yes ] || ! slurm_start $((20000 + RANDOM % 10000 * 2)) || up=yes
done
[ $up = yes ] || skip_all "Slurm does not start here: $(tail -qn 1 "$tmp/slurmctld" "$tmp/slurmd" | cut -c 1-100 | tr '\n' ' ')"

ranks() { # N OPTION...: started and all of them met
	timeout 120 srun --overcommit -n "$1" "${@:2}" "$build/cli/tests/rank_boot" \
		>"$tmp/out.$1" 2>&1 && met "$1"
}
met() { [ "$(grep -c "knows $1 of $1" "$tmp/out.$1")" -eq "$1" ]; }
show() { diag "$(tail -n 5 "$tmp/out.$1" | cut -c 1-200)"; }

export FI_PROVIDER=tcp
ok "srun, by its variables" ranks 3 || show 3
timeout 120 srun -s --overcommit -n 4 "$build/cli/tests/rank_boot" >"$tmp/out.4" 2>&1 &
other=$!
ok "and again, two steps at once" ranks 3 -s || show 3
wait $other
ok "of which each knows its own" met 4 || show 4
if ! grep -q '^#define HAVE_PMIX 1' "$build/config.h"; then
	skip 1 "built without PMIx"
elif ! timeout 60 srun --mpi=list 2>&1 | grep -q pmix; then
	skip 1 "Slurm has no plugin for PMIx here (Debian: slurm-wlm-basic-plugins)"
else
	ok "srun, by PMIx" ranks 3 --mpi=pmix || show 3
fi
done_testing
