#!/bin/bash
# Make tests/vectors/data/NAME_vNNN.jsonl.gz of client rules by the classes of the given versions of RocketMQ.
# usage: [FILES="sql92 batch_full"] tools/vectors/versions/make.sh 5.0.0 5.1.4 5.5.0
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../../../tests/vectors/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for version in "$@"; do
  lib=${ROCKETMQ_LIBS:+$ROCKETMQ_LIBS/$version/lib}
  if [ -z "$lib" ]; then
    lib=$work/$version/lib
    mvn -q -B -f "$here/pom.xml" -Drocketmq.version="$version" dependency:copy-dependencies -DoutputDirectory="$lib"
  fi
  mkdir -p "$work/$version/classes"
  javac -nowarn -d "$work/$version/classes" -cp "$lib/*" "$here"/*.java
  # The size of the memory is set for each question, so what compares with it must not be compiled with one in it.
  java -XX:CompileCommand=quiet -XX:CompileCommand=exclude,org.apache.rocketmq.store.DefaultMessageStore::* \
    -XX:-ShowCodeDetailsInExceptionMessages -Duser.timezone=UTC -Dfile.encoding=UTF-8 -Duser.home="$work/$version" -cp "$work/$version/classes:$lib/*" \
    org.apache.rocketmq.client.impl.factory.VersionVectors "$data" "_v${version//./}" ${FILES:-}
done
