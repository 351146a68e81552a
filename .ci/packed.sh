#!/usr/bin/env bash
# Builds crates from their packages: each `tapedeck-NAME` as `cargo package --no-verify` packed it, all in one workspace.
# Cargo's own verification keeps packages unpacked by version, so that it builds yesterday's dependency of the same version.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/packed"
target=$(cd "$target" && pwd)
rm -rf "$target/packed/src"
mkdir "$target/packed/src"

{
  echo '[workspace]'
  echo 'resolver = "2"'
  echo 'members = ["tapedeck-*"]'
  echo '[patch.crates-io]'
} >"$target/packed/src/Cargo.toml"
for crate in "$@"; do
  packages=("$target/package/tapedeck-$crate"-[0-9]*.crate)
  name=$(basename "${packages[-1]}" .crate)
  # The instants in a package never change, and the compiler goes by them.
  tar -xzmf "${packages[-1]}" -C "$target/packed/src"
  for file in LICENSE-MIT LICENSE-APACHE README.md; do
    test -s "$target/packed/src/$name/$file" || { echo "tapedeck-$crate is packed without its $file"; exit 1; }
  done
  echo "tapedeck-$crate = { path = \"$name\" }" >>"$target/packed/src/Cargo.toml"
done
cp Cargo.lock "$target/packed/src/Cargo.lock"
cd "$target/packed/src"
CARGO_TARGET_DIR="$target/packed" cargo check --quiet --workspace
echo "$# packages pack and build"
