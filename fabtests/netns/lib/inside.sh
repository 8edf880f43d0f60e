#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The first process of the namespaces that fabtests/netns/run makes.
set -u

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=fabtests/lib/say.sh
. "$here/../../lib/say.sh"
# shellcheck source=fabtests/netns/lib/pair.sh
. "$here/pair.sh"

[ $# -gt 0 ] || die 2 "inside.sh is run by fabtests/netns/run"
# shellcheck disable=SC2086 # two words
netns_make ${WEFT_NETNS-1500 0} || exit 77
# The first process of a namespace ignores what it has no trap for, and so would unshare.
trap 'kill -KILL -1; exit 143' TERM INT HUP
"$@" <&0 &
wait $!
