#!/usr/bin/env bash
# Print the home of a Java that Spark runs on (17 or 21): JAVA_HOME's, then the one on the PATH, then any
# that is installed. Where there is none, root on a system with apt-get gets one; others are told the command.
# Standard output holds the home and nothing else.
set -euo pipefail

packages=(openjdk-17-jre-headless openjdk-21-jre-headless)

say() { printf 'java: %s\n' "$*" >&2; }

# Every place where a Java may be, best first. A pattern that matches nothing stands for no file and is passed over.
places() {
    if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; fi
    command -v java || true
    printf '%s\n' /usr/lib/jvm/*/bin/java /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java \
        /opt/homebrew/opt/openjdk@*/bin/java /usr/local/opt/openjdk@*/bin/java
}

# "17 /usr/lib/jvm/..." as the Java itself tells it: the command may be a link or a wrapper script. Options that
# the environment gives to every Java may be none to this one: it is there all the same, and no other is installed.
version_and_home() {
    { env -u JDK_JAVA_OPTIONS -u JAVA_TOOL_OPTIONS -u _JAVA_OPTIONS "$1" -XshowSettings:properties -version 2>&1 || true; } | awk -F ' = ' '
        $1 ~ /java\.specification\.version$/ { version = $2 }
        $1 ~ /java\.home$/ { home = $2 }
        END { if (version != "" && home != "") print version, home }'
}

# Sets home to the first usable Java's, and unfit to the first one that is not usable.
home='' unfit=''
find_java() {
    local place version found
    while read -r place; do
        [ -x "$place" ] || continue
        read -r version found < <(version_and_home "$place") || continue
        case $version in
            17 | 21) home=$found && return ;;
            *) unfit=${unfit:-"Java $version at $place"} ;;
        esac
    done < <(places)
    return 1
}

# The first of the packages that this distribution has, as far as its package lists tell.
apt_package() {
    local package
    for package in "${packages[@]}"; do
        if apt-get install --simulate "$package" > /dev/null 2>&1; then echo "$package" && return; fi
    done
    return 1
}

install_with_apt() {
    local package
    say "Java 17 or 21 is missing${unfit:+ (found $unfit)}; installing it with apt-get"
    # One broken source need not matter: whether the package can be had is decided below.
    apt-get update >&2 < /dev/null || true
    if ! package=$(apt_package); then
        say "apt-get offers neither ${packages[0]} nor ${packages[1]}: install Java 17 or 21 and set JAVA_HOME"
        return 1
    fi
    if ! DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package" >&2 < /dev/null; then
        say "apt-get could not install $package: see its message above"
        return 1
    fi
}

what_to_do() {
    local package
    if command -v apt-get > /dev/null; then
        if package=$(apt_package); then
            echo "run: sudo apt-get install $package"
        else
            echo "run: sudo apt-get update && { sudo apt-get install ${packages[0]} || sudo apt-get install ${packages[1]}; }"
        fi
    elif command -v dnf > /dev/null; then echo 'run: sudo dnf install java-21-openjdk-headless'
    elif command -v zypper > /dev/null; then echo 'run: sudo zypper install java-21-openjdk-headless'
    elif command -v pacman > /dev/null; then echo 'run: sudo pacman -S jre21-openjdk-headless'
    elif command -v apk > /dev/null; then echo 'run: apk add openjdk21-jre-headless'
    elif command -v brew > /dev/null; then echo 'run: brew install openjdk@21'
    else echo 'install one and set JAVA_HOME to it'
    fi
}

if ! find_java; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
        say "Java 17 or 21 is missing${unfit:+ (found $unfit)}; $(what_to_do)"
        exit 1
    fi
    install_with_apt || exit 1
    if ! find_java; then
        say 'apt-get installed a Java, yet none of version 17 or 21 is to be found: set JAVA_HOME to it'
        exit 1
    fi
fi
if [ -n "$unfit" ]; then say "using $home, for Spark does not run on $unfit"; fi
echo "$home"
