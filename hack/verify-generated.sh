#!/usr/bin/env bash
# Fails if a generated file is not what its source makes. It generates into a
# copy, so that nothing of the tree changes.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r go.mod go.sum Makefile api "$copy"
mkdir -p "$copy/hack" "$copy/config/crd/bases"
cp -r hack/tools "$copy/hack"
make -C "$copy" --no-print-directory generate manifests >/dev/null
fail=0
for path in api config/crd/bases; do
  diff -ru "$path" "$copy/$path" || fail=1
done
if [ $fail -ne 0 ]; then
  echo "generated files are not current: run make generate manifests" >&2
  exit 1
fi
echo "generated files are current"
