/* SPDX-License-Identifier: BSD-2-Clause */
/* See sys_file.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/host/sys_file.h"

__attribute__((format(printf, 2, 0))) static bool text_of(char text[SYS_TEXT],
							  const char *fmt, va_list ap)
{
	char path[PATH_MAX];
	ssize_t n, len = 0;
	int fd;

	if (vsnprintf(path, sizeof(path), fmt, ap) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	do {
		n = read(fd, text + len, (size_t)(SYS_TEXT - 1 - len));
		if (n > 0)
			len += n;
	} while ((n > 0 && len < SYS_TEXT - 1) || (n < 0 && errno == EINTR));
	close(fd);
	if (n < 0)
		return false;
	text[len] = '\0';
	if (len && text[len - 1] == '\n')
		text[len - 1] = '\0';
	return true;
}

bool sys_text(char text[SYS_TEXT], const char *fmt, ...)
{
	va_list ap;
	bool good;

	va_start(ap, fmt);
	good = text_of(text, fmt, ap);
	va_end(ap);
	return good;
}

bool sys_int(int64_t *value, const char *fmt, ...)
{
	char text[SYS_TEXT], *end;
	va_list ap;
	bool good;

	va_start(ap, fmt);
	good = text_of(text, fmt, ap);
	va_end(ap);
	if (!good)
		return false;
	*value = strtoll(text, &end, 10);
	return end != text && !*end;
}

bool sys_hex(uint64_t *value, const char *fmt, ...)
{
	char text[SYS_TEXT], *end;
	va_list ap;
	bool good;

	va_start(ap, fmt);
	good = text_of(text, fmt, ap);
	va_end(ap);
	if (!good)
		return false;
	*value = strtoull(text, &end, 16);
	return end != text && !*end;
}

bool sys_real(char path[PATH_MAX], const char *fmt, ...)
{
	char from[PATH_MAX];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(from, sizeof(from), fmt, ap);
	va_end(ap);
	return len < (int)sizeof(from) && realpath(from, path);
}

bool sys_is_pci(const char *name)
{
	static const char hex[] = "0123456789abcdef";
	const size_t domain = strspn(name, hex);

	return domain >= 4 && domain <= 8 && name[domain] == ':' &&
	       strspn(name + domain + 1, hex) == 2 && name[domain + 3] == ':' &&
	       strspn(name + domain + 4, hex) == 2 && name[domain + 6] == '.' &&
	       strspn(name + domain + 7, hex) == 1 && !name[domain + 8];
}
