#!/usr/bin/env bash
# The steps of action.yml: installs Steersman into an environment of its own, starts it in the background, and writes
# KUBECONFIG for later steps. Inputs come as STEERSMAN_VERSION, _COMMAND, _NODES, _FLAGS and _PACKAGE.
set -euo pipefail

: "${RUNNER_TEMP:?is set by the runner}" "${GITHUB_ENV:?is set by the runner}" "${GITHUB_OUTPUT:?is set by the runner}"
home=$RUNNER_TEMP/steersman
package=${STEERSMAN_PACKAGE:-}
if [[ -z "$package" ]]; then
    package=steersman${STEERSMAN_VERSION:+==$STEERSMAN_VERSION}
fi

python3 -m venv "$home/venv"
"$home/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$package"
steersman=$home/venv/bin/steersman
read -r -a flags <<<"${STEERSMAN_FLAGS:-}"

case ${STEERSMAN_COMMAND:-up} in
up)
    "$steersman" up --detach --nodes "${STEERSMAN_NODES:-1}" --data-dir "$home/data" ${flags[@]+"${flags[@]}"}
    ;;
serve)
    nohup "$steersman" serve --bind-address 127.0.0.1 --data-dir "$home/data" ${flags[@]+"${flags[@]}"} \
        >"$home/ready" 2>"$home/serve.log" &
    server=$!
    until grep -q '^ready ' "$home/ready"; do
        kill -0 "$server" || { cat "$home/serve.log" >&2; exit 1; }
        sleep 0.1
    done
    cat "$home/ready"
    ;;
*)
    echo "the input command is \"$STEERSMAN_COMMAND\": up or serve is expected" >&2
    exit 1
    ;;
esac

kubeconfig=$home/data/admin.kubeconfig
echo "KUBECONFIG=$kubeconfig" >>"$GITHUB_ENV"
echo "$home/venv/bin" >>"${GITHUB_PATH:-/dev/null}"
{
    echo "kubeconfig=$kubeconfig"
    echo "version=$("$steersman" --version | sed 's/^steersman, version //')"
} >>"$GITHUB_OUTPUT"
