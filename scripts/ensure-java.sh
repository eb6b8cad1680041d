#!/bin/sh
# Spark 4 needs Java 17 or newer. On Debian, as root, install it; elsewhere print how to get it.
set -eu

java_major() {
    command=java
    [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ] && command="$JAVA_HOME/bin/java"
    "$command" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

major=$(java_major || true)
if [ -n "$major" ] && [ "$major" -ge 17 ]; then
    exit 0
fi

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Java 17 or newer is missing; installing Debian's package ..."
    apt-get update -q >/dev/null
    for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
        if DEBIAN_FRONTEND=noninteractive apt-get install -q -y "$package" >/dev/null 2>&1; then
            exit 0
        fi
    done
fi

cat >&2 <<TEXT
Spark needs Java 17 or newer${major:+, and this machine has Java $major}. To get it:
  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless
  Fedora, RHEL     sudo dnf install java-17-openjdk-headless
  macOS            brew install openjdk@17
  conda            conda install -c conda-forge openjdk=17
Then run this again. If several versions are installed, set JAVA_HOME to the one to use.
TEXT
exit 1
