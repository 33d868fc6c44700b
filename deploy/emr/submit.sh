#!/usr/bin/env bash
# Bring sbroute to Amazon EMR, run it there and wait for its end, or put it on a schedule (docs/how-to/emr.md).
#
#   upload               the zip, the jobs and the configuration to SBROUTE_S3
#   serverless           import, then resolve on the EMR Serverless application APPLICATION_ID, as EXECUTION_ROLE_ARN
#   ec2                  the same as steps of the EMR cluster CLUSTER_ID
#   schedule-serverless  EventBridge schedules for the same runs, started as SCHEDULE_ROLE_ARN
#   schedule-ec2         one for the steps
#
# Account, region and keys are those of the aws command. The names in capitals are environment variables; besides
# them SBROUTE_CONFIG (conf/emr.yaml) says which configuration to upload, RUN_ID (hand- and the time) under which id
# resolve runs, which counts once, and POLL_SECONDS (30) how often to ask. Exports are read from SBROUTE_S3/exports.
# Exit codes: 0 done; 2 something is missing or wrong here, nothing was submitted; 3 the run failed or was cancelled;
# 4 it was submitted and its end could not be learnt; any other is that of the aws command, which says why.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

say() { printf 'submit: %s\n' "$*" >&2; }

refuse() {
    say "$*"
    exit 2
}

# What each variable may look like. None of it needs quoting, neither in JSON nor here.
pattern() {
    case $1 in
        SBROUTE_S3) echo '^s3://[a-z0-9][a-z0-9.-]+(/[A-Za-z0-9._=-]+)*$' ;;
        APPLICATION_ID) echo '^[0-9a-z]+$' ;;
        CLUSTER_ID) echo '^j-[0-9A-Z]+$' ;;
        EXECUTION_ROLE_ARN | SCHEDULE_ROLE_ARN) echo '^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$' ;;
        RUN_ID) echo '^[A-Za-z0-9._:+-]+$' ;;
        POLL_SECONDS) echo '^[0-9]+$' ;;
        *) refuse "${1} is no variable of this script" ;;
    esac
}

check() {
    local name wanted
    for name in "$@"; do
        wanted=$(pattern "$name")
        [ -n "${!name:-}" ] || refuse "set $name, such as in: export $name=…"
        [[ ${!name} =~ $wanted ]] || refuse "$name does not look right: ${!name}"
    done
}

# Print a JSON file of this folder with its ${NAMES} filled in.
filled() {
    local text name names
    text=$(< "$here/$1")
    # shellcheck disable=SC2016
    names=$(grep -o '\${[A-Z0-9_]*}' "$here/$1" | tr -d '${}' | sort -u)
    for name in $names; do
        check "$name"
        text=${text//\$\{$name\}/${!name}}
    done
    printf '%s\n' "$text"
}

# Fill a file in for aws, which reads it by name; sets request.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prepare() {
    filled "$1" > "$work/$1"
    request=file://$work/$1
}

# Ask for the state until it is one of the last ones: wait_for GOOD BAD… -- COMMAND that prints the state.
wait_for() {
    local good=$1 bad=() state
    shift
    while [ "$1" != -- ]; do bad+=("$1") && shift; done
    shift
    while true; do
        # Inside a condition set -e does not hold: without this a lost connection would be asked for ever.
        if ! state=$("$@"); then say 'its state could not be learnt' && exit 4; fi
        case " $good ${bad[*]} " in *" $state "*) break ;; esac
        sleep "$POLL_SECONDS"
    done
    say "ended as $state"
    [ "$state" = "$good" ]
}

upload() {
    local zip=$root/build/emr/sbroute.zip configuration=${SBROUTE_CONFIG:-$root/conf/emr.yaml} wheel
    check SBROUTE_S3
    [ -f "$zip" ] || refuse "$zip is missing: run make wheel, then .venv/bin/python deploy/emr/package.py"
    for wheel in "$root"/dist/*.whl; do
        [ ! "$wheel" -nt "$zip" ] || refuse "$wheel is newer than the zip: run .venv/bin/python deploy/emr/package.py"
    done
    [ -f "$configuration" ] || refuse "SBROUTE_CONFIG is no file: $configuration"
    aws s3 cp --only-show-errors "$zip" "$SBROUTE_S3/sbroute.zip"
    aws s3 cp --only-show-errors "$root/jobs/import_.py" "$SBROUTE_S3/jobs/import_.py"
    aws s3 cp --only-show-errors "$root/jobs/resolve.py" "$SBROUTE_S3/jobs/resolve.py"
    aws s3 cp --only-show-errors "$configuration" "$SBROUTE_S3/conf/emr.yaml"
    say "uploaded to $SBROUTE_S3"
}

# One job run on EMR Serverless, of a file.
job_run() {
    local run about
    prepare "$1"
    run=$(aws emr-serverless start-job-run --cli-input-json "$request" --query jobRunId --output text)
    say "job run $run of application $APPLICATION_ID; its logs go to $SBROUTE_S3/logs/"
    about=(aws emr-serverless get-job-run --application-id "$APPLICATION_ID" --job-run-id "$run" --output text)
    wait_for SUCCESS FAILED CANCELLED -- "${about[@]}" --query jobRun.state && return
    say "$("${about[@]}" --query jobRun.stateDetails)"
    exit 3
}

serverless() {
    job_run serverless-import-job-run.json
    job_run serverless-job-run.json
}

ec2() {
    local steps step about
    check CLUSTER_ID
    prepare ec2-step.json
    steps=$(aws emr add-steps --cluster-id "$CLUSTER_ID" --steps "$request" --query StepIds --output text)
    for step in $steps; do
        say "step $step of cluster $CLUSTER_ID"
        about=(aws emr describe-step --cluster-id "$CLUSTER_ID" --step-id "$step" --output text)
        wait_for COMPLETED FAILED CANCELLED INTERRUPTED -- "${about[@]}" --query Step.Status.State && continue
        say "$("${about[@]}" --query Step.Status.FailureDetails)"
        exit 3
    done
}

schedule() {
    prepare "$1-schedule.json"
    aws scheduler create-schedule --cli-input-json "$request" --query ScheduleArn --output text
}

POLL_SECONDS=${POLL_SECONDS:-30}
RUN_ID=${RUN_ID:-hand-$(date -u +%Y%m%dT%H%M%SZ)}
check POLL_SECONDS
command -v aws > /dev/null || refuse 'the aws command is missing'
case ${1:-} in
    upload | serverless | ec2) "$1" ;;
    schedule-serverless) schedule serverless-import && schedule serverless ;;
    schedule-ec2) schedule ec2 ;;
    *) refuse 'say what: upload, serverless, ec2, schedule-serverless or schedule-ec2' ;;
esac
