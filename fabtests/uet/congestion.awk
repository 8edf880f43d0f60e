# SPDX-License-Identifier: BSD-2-Clause
# The picture of a run (test_uet_switch --data): above what each sender got, below the queue.
# Lines: microseconds, longest queue in bytes, bytes of each sender.
function x_of(us)
{
	return left + width * us / (last + step)
}

function line(points, colour, thick)
{
	printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" points=\"%s\"/>\n", \
		colour, thick, points
}

function words(x, y, anchor, text)
{
	printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, text
}

function frame(top, height, most, unit, what, i)
{
	printf "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999\"/>\n", \
		left, top, width, height
	for (i = 0; i <= 4; i++)
		words(left - 6, top + height - height * i / 4 + 4, "end", \
			sprintf("%.4g", most * i / 4))
	words(left, top - 8, "start", what " (" unit ")")
}

BEGIN {
	FS = "\t"
	left = 70
	width = 860
	window = 20 # intervals that a sender's line is an average of
}

/^#/ {
	split($0, part, " ")
	for (i = 2; i in part; i += 2)
		value[part[i]] = part[i + 1]
	next
}

{
	n++
	at[n] = $1
	queue[n] = $2
	senders = NF - 2
	for (i = 1; i <= senders; i++)
		got[i, n] = $(i + 2)
}

END {
	if (n < 2 * window) {
		print "congestion.awk: no run in the data" >"/dev/stderr"
		exit 1
	}
	last = at[n]
	step = at[2] - at[1]
	for (i = 1; i <= senders; i++)
		for (t = window; t <= n; t += window / 2) {
			sum = 0
			for (k = 0; k < window; k++)
				sum += got[i, t - k]
			rate[i, t] = sum / (window * step) # MB/s
			most = rate[i, t] > most ? rate[i, t] : most
		}
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"620\" font-family=\"sans-serif\" font-size=\"12\">\n"
	print "<rect width=\"960\" height=\"620\" fill=\"white\"/>"
	words(left, 24, "start", title)
	words(left, 42, "start", sprintf("second half: %.1f %% of %.0f MB/s used, Jain's index %.3f, queue at most %.0f of %.0f KiB", \
		100 * value["use"], value["rate"] / 1e6, value["fairness"], \
		value["queue"] / 1024, value["room"] / 1024))
	frame(80, 300, most, "MB/s", "each sender, over " window * step / 1000 " ms")
	for (i = 1; i <= senders; i++) {
		points = ""
		for (t = window; t <= n; t += window / 2)
			points = points sprintf("%.1f,%.1f ", x_of(at[t]), 380 - 300 * rate[i, t] / most)
		line(points, sprintf("hsl(%d,65%%,45%%)", 360 * (i - 1) / senders), 1)
	}
	fair = value["rate"] / 1e6 / senders
	line(sprintf("%d,%.1f %d,%.1f", left, 380 - 300 * fair / most, left + width, \
		380 - 300 * fair / most), "black", 0.7)
	words(left + width, 72, "end", "black: an equal share")
	frame(430, 140, value["room"] / 1024, "KiB", "the longest queue of each interval")
	points = ""
	for (t = 1; t <= n; t++)
		points = points sprintf("%.1f,%.1f ", x_of(at[t]), 570 - 140 * queue[t] / value["room"])
	line(points, "#305090", 0.8)
	for (i = 0; i <= 4; i++)
		words(left + width * i / 4, 588, "middle", sprintf("%.0f ms", (last + step) * i / 4000))
	print "</svg>"
}
