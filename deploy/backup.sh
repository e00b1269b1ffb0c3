#!/bin/sh
# Back up the database of the team server: tokens, audit and pushes are nowhere else.
#
#   LOKI_BACKUP_DATABASE=postgresql://postgres@db/loki deploy/backup.sh FOLDER [DAYS]
#
# The role must be a superuser, since pg_dump refuses to dump rows behind a policy otherwise. The file
# is complete once it has its name. Files older than DAYS (30) are removed, never the last one.
set -eu
umask 077

folder=${1:?"usage: backup.sh FOLDER [DAYS]"}
days=${2:-30}
database=${LOKI_BACKUP_DATABASE:?"set LOKI_BACKUP_DATABASE to the address of the database"}

mkdir -p "$folder"
file=$folder/loki-$(date -u +%Y%m%dT%H%M%SZ).dump
trap 'rm -f "$file.partial"' EXIT
pg_dump --format=custom --file="$file.partial" "$database"
pg_restore --list "$file.partial" > /dev/null # it can be read
mv "$file.partial" "$file"
find "$folder" -name 'loki-*.dump' -mtime "+$days" ! -path "$file" -delete
echo "$file"
