#!/usr/bin/env bash
# The suite of the store, and that of the cluster, on an S3 server that is slow, throttles, fails
# and loses answers. Needs Python 3 with venv.
#
#   tests/cloud.sh [CARGO TEST ARGUMENTS]      EVENKEEL_TEST_FAULTS='{}' makes the server a good one
#
# EVENKEEL_TEST_PROGRAM is the program of the tests, if it is built already.
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"
# The message of a failed test says enough.
export RUST_BACKTRACE=0
python="$target/test-venv/bin/python"

if ! "$python" -c 'import moto' 2>/dev/null; then
    python3 -m venv "$target/test-venv"
    "$python" -m pip install --quiet --disable-pip-version-check -r tests/servers/requirements.txt
fi
work="$(mktemp -d)"
"$python" tests/servers/s3.py "$work/port" &
server=$!
trap 'kill $server; rm -rf "$work"' EXIT
for _ in $(seq 300); do
    [ -f "$work/port" ] && break
    sleep 0.1
done
export AWS_ENDPOINT_URL="http://127.0.0.1:$(cat "$work/port")"
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1
export EVENKEEL_TEST_STORE=s3://evenkeeltests
faults="${EVENKEEL_TEST_FAULTS:-{\"latency_ms\":[0,4],\"throttle\":0.01,\"fail\":0.01,\"lose\":0.01,\"seed\":7\}}"
curl --silent --fail -X PUT "$AWS_ENDPOINT_URL/_faults" --data "$faults" > "$work/settings"
# Tests whose tables may lie anywhere; the others look at files of the disk.
suite=(crash_objects model:: commit_boundary store::meanwhile processes::writers processes::cleaning processes::killed objects:: cluster)
if [ $# -gt 0 ]; then suite=("$@"); fi
run_tests() {
    if [ -n "${EVENKEEL_TEST_PROGRAM:-}" ]; then
        "$EVENKEEL_TEST_PROGRAM" "$@"
    else
        cargo test --locked --test it -- "$@"
    fi
}
run_tests --include-ignored --test-threads "${EVENKEEL_TEST_THREADS:-6}" "${suite[@]}"
curl --silent "$AWS_ENDPOINT_URL/_faults"
echo
if [ $# -eq 0 ]; then
    echo "by the client of gs://"
    export EVENKEEL_TEST_STORE=gs://evenkeeltests GOOGLE_ALLOW_HTTP=true
    export GOOGLE_SERVICE_ACCOUNT_KEY="{\"private_key\":\"k\",\"private_key_id\":\"\",\"client_email\":\"\",\"disable_oauth\":true,\"gcs_base_url\":\"$AWS_ENDPOINT_URL\"}"
    suite=(commit_boundary store::meanwhile crash_objects::a_large objects::requests::opening objects::requests::the_newest objects::exports model::conditions::a_table)
    run_tests "${suite[@]}"
fi
