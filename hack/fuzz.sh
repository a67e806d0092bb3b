#!/usr/bin/env bash
# Runs every fuzz test of the module for a while: hack/fuzz.sh 20s
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
found=0
while IFS=: read -r file test; do
  found=$((found + 1))
  go test -run '^$' -fuzz "^$test\$" -fuzztime "$time" "./$(dirname "$file")"
done < <(grep -rhoHE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' api cmd controllers e2e pkg 2>/dev/null | sed 's/:func /:/' | sort)
echo "$found fuzz tests ran for $time each"
