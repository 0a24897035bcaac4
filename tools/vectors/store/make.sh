#!/bin/bash
# Make tests/vectors/data/late_end_vNNN.jsonl.gz by the classes of the given versions of RocketMQ, 4.9 or 5.0.
# usage: tools/vectors/store/make.sh 4.9.7 5.0.0
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for version in "$@"; do
  lib=${ROCKETMQ_LIBS:+$ROCKETMQ_LIBS/$version/lib}
  if [ -z "$lib" ]; then
    lib=$work/$version/lib
    mvn -q -B -f "$here/../versions/pom.xml" -Drocketmq.version="$version" dependency:copy-dependencies -DoutputDirectory="$lib"
  fi
  mkdir -p "$work/$version/classes"
  javac -nowarn -d "$work/$version/classes" -cp "$lib/*" "$here"/*.java
  java -Duser.home="$work/$version" -Djava.io.tmpdir="$work" -cp "$work/$version/classes:$lib/*" org.apache.rocketmq.store.LateEnd \
    "$here/../../../tests/vectors/data" "_v${version//./}"
done
