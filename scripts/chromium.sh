#!/usr/bin/env bash
# Print the path of a Chromium or Chrome and, on a second line, that of a chromedriver of the same version: those
# that CHROMIUM and CHROMEDRIVER name, then those on the PATH, then any that are installed. Where there is no such
# pair, root on a system with apt-get gets one; others are told the command. Standard output holds the two lines and
# nothing else.
set -euo pipefail

# Debian's names; what Ubuntu has under its own names is no package but a way to a snap, and runs in no container.
packages=(chromium chromium-driver)

say() { printf 'chromium: %s\n' "$*" >&2; }

# Every place where either may be, best first. What is not there is passed over.
browsers() {
    local name
    if [ -n "${CHROMIUM:-}" ]; then echo "$CHROMIUM"; fi
    for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do command -v "$name" || true; done
    printf '%s\n' '/Applications/Chromium.app/Contents/MacOS/Chromium' \
        '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome' /opt/google/chrome/chrome /snap/bin/chromium
}

drivers() {
    if [ -n "${CHROMEDRIVER:-}" ]; then echo "$CHROMEDRIVER"; fi
    command -v chromedriver || true
    printf '%s\n' /usr/lib/chromium/chromedriver /usr/lib/chromium-browser/chromedriver \
        /opt/homebrew/bin/chromedriver /usr/local/bin/chromedriver /snap/bin/chromium.chromedriver
}

# "156", the number before the first point of what the program says of itself; nothing where it does not run.
version() { { "$1" --version 2> /dev/null < /dev/null || true; } | sed -nE '1s/^[^0-9]*([0-9]+)\..*/\1/p'; }

# Sets browser and driver to the first pair of one version, and unfit to the first that is none.
browser='' driver='' unfit=''
find_pair() {
    local of_browser of_driver
    while read -r browser; do
        [ -x "$browser" ] && of_browser=$(version "$browser") && [ -n "$of_browser" ] || continue
        while read -r driver; do
            [ -x "$driver" ] && of_driver=$(version "$driver") && [ -n "$of_driver" ] || continue
            if [ "$of_driver" = "$of_browser" ]; then return; fi
            unfit=${unfit:-"$browser is of version $of_browser and $driver of $of_driver"}
        done < <(drivers)
        unfit=${unfit:-"$browser has no chromedriver"}
    done < <(browsers)
    return 1
}

install_with_apt() {
    say "Chromium and its driver are missing${unfit:+ ($unfit)}; installing them with apt-get"
    # One broken source need not matter: whether the packages can be had shows below.
    apt-get update >&2 < /dev/null || true
    if ! DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}" >&2 < /dev/null; then
        say "apt-get could not install ${packages[*]}: see its message above"
        return 1
    fi
}

what_to_do() {
    if command -v apt-get > /dev/null; then echo "run: sudo apt-get update && sudo apt-get install ${packages[*]}"
    elif command -v dnf > /dev/null; then echo 'run: sudo dnf install chromium chromedriver'
    elif command -v zypper > /dev/null; then echo 'run: sudo zypper install chromium chromedriver'
    elif command -v pacman > /dev/null; then echo 'run: sudo pacman -S chromium'
    elif command -v apk > /dev/null; then echo 'run: apk add chromium chromium-chromedriver'
    elif command -v brew > /dev/null; then echo 'run: brew install --cask google-chrome chromedriver'
    else echo 'install both and set CHROMIUM and CHROMEDRIVER to them'
    fi
}

if ! find_pair; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
        say "Chromium and a chromedriver of its version are missing${unfit:+ ($unfit)}; $(what_to_do)"
        exit 1
    fi
    install_with_apt || exit 1
    unfit=''
    if ! find_pair; then
        say "apt-get installed ${packages[*]}, yet no pair is to be found${unfit:+ ($unfit)}: set CHROMIUM and CHROMEDRIVER"
        exit 1
    fi
fi
printf '%s\n' "$browser" "$driver"
