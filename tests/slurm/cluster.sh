#!/bin/sh
# A Slurm of two nodes on this machine, for tests: cluster.sh start FOLDER | stop FOLDER. Needs root and Debian's slurm-wlm
# and munge. Everything lies under FOLDER; SLURM_CONF=FOLDER/slurm.conf leads its tools there.
set -eu
action=$1
folder=$(realpath -m "$2")
host=$(hostname -s)

write_configuration() {
    mkdir -p "$folder/state" "$folder/spool-n1" "$folder/spool-n2" "$folder/munge"
    chmod 755 "$folder" && chmod 700 "$folder/munge"
    dd if=/dev/urandom of="$folder/munge/key" bs=64 count=1 2>/dev/null
    chmod 400 "$folder/munge/key"
    cat >"$folder/slurm.conf" <<END
ClusterName=two
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CryptoType=crypto/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
SlurmctldPort=16817
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MaxArraySize=3
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=16818 CPUs=1 State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=16819 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
END
}

stop() {
    for pid in "$folder"/slurmd-n1.pid "$folder"/slurmd-n2.pid "$folder"/slurmctld.pid "$folder"/munge/pid; do
        [ ! -s "$pid" ] || kill "$(cat "$pid")" 2>/dev/null || true
    done
}

case $action in
start)
    write_configuration
    munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" \
        --log-file="$folder/munge/log" --seed-file="$folder/munge/seed"
    export SLURM_CONF="$folder/slurm.conf"
    slurmctld -c -f "$SLURM_CONF"
    slurmd -N n1 -f "$SLURM_CONF"
    slurmd -N n2 -f "$SLURM_CONF"
    for _ in $(seq 200); do
        [ "$(sinfo -h -N -t idle 2>/dev/null | wc -l)" -ne 2 ] || exit 0
        sleep 0.1
    done
    sinfo -N >&2 || true
    tail "$folder"/*.log >&2
    stop
    exit 1
    ;;
stop) stop ;;
esac
