#!/bin/sh
# Restore the last backup beside the database, compare both, and drop the copy again.
#
#   LOKI_BACKUP_DATABASE=postgresql://postgres@db/loki deploy/restore-drill.sh FOLDER
#
# Run it by a timer: a backup that was never restored is none. What came after the backup may be
# missing from the copy; what the copy has must be in the database as it is there.
set -eu

folder=${1:?"usage: restore-drill.sh FOLDER"}
database=${LOKI_BACKUP_DATABASE:?"set LOKI_BACKUP_DATABASE to the address of the database"}
here=$(dirname "$0")
last=$(find "$folder" -name 'loki-*.dump' | sort | tail -n 1)
[ -n "$last" ] || { echo "no backup in $folder" >&2; exit 1; }

ask() { psql --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 "$1" --command="$2"; }
name=loki_drill_$$
copy=$(printf '%s' "$database" | sed -E "s#^(postgres(ql)?://[^/]*/)[^?]*#\1$name#")
[ "$copy" != "$database" ] || { echo "LOKI_BACKUP_DATABASE is no URL with a database" >&2; exit 1; }
ask "$database" "CREATE DATABASE $name" > /dev/null
trap 'ask "$database" "DROP DATABASE IF EXISTS $name" > /dev/null' EXIT

"$here/restore.sh" "$last" "$copy"
counts="SELECT (SELECT count(*) FROM loki.tokens), (SELECT count(*) FROM loki.audit),
  (SELECT count(*) FROM loki.records WHERE pushed_by IS NOT NULL AND NOT gone)"
restored=$(ask "$copy" "$counts")
present=$(ask "$database" "$counts")
echo "$last: tokens, audit, pushes: $restored of $present"
echo "$restored $present" | tr '|' ' ' | awk '{ exit !($1 <= $4 && $2 <= $5 && $1 > 0) }' || {
  echo "the copy does not fit the database" >&2
  exit 1
}
