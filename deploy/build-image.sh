#!/bin/sh
# Builds the image on a Python image that is named by its digest, and refuses any other.
#
#     deploy/build-image.sh registry.example.com/kubesched:0.1.0     with the base image in deploy/base-image.txt
#     PYTHON_IMAGE=python:3.11-slim@sha256:... deploy/build-image.sh …     with another
#     deploy/build-image.sh --renew                                 writes deploy/base-image.txt: what the tag means today
set -eu
cd "$(dirname "$0")/.."
tag=python:3.11-slim
file=deploy/base-image.txt

if [ "${1:-}" = --renew ]; then
    docker pull --quiet "$tag" >/dev/null
    digest=$(docker image inspect --format '{{index .RepoDigests 0}}' "$tag" | sed 's/.*@//')
    printf '%s@%s\n' "$tag" "$digest" >"$file.new"
    base=$(cat "$file.new")
else
    base=${PYTHON_IMAGE:-$(cat "$file" 2>/dev/null || true)}
fi
if ! printf '%s' "$base" | tr '\n' ' ' | grep -Eq '^[a-z0-9][a-z0-9./:_-]*@sha256:[0-9a-f]{64}$'; then
    rm -f "$file.new"
    echo "error: the base image must be named by its digest, not \"$base\": run \`make base-image\`, or set PYTHON_IMAGE" >&2
    exit 2
fi
if [ "${1:-}" = --renew ]; then
    mv "$file.new" "$file"
    echo "$file: $base; commit it"
    exit 0
fi
[ -n "${1:-}" ] || { echo "error: say what to call the image: make image IMAGE=registry.example.com/kubesched:0.1.0" >&2; exit 2; }
exec docker build --file deploy/Dockerfile --build-arg "PYTHON_IMAGE=$base" --tag "$1" .
