/* SPDX-License-Identifier: Apache-2.0 */
/* The only program of the test's image: tells what it finds around it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void tell_entries(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    int count = 0;

    while (dir && (e = readdir(dir)))
        count += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    printf("%s %d\n", path, dir ? count : -1);
}

static void tell_file(const char *path)
{
    struct stat st;

    printf("%s %lld\n", path, stat(path, &st) == 0 ? (long long)st.st_size : -1);
}

int main(int argc, char **argv)
{
    const char *from = getenv("FROM_IMAGE"), *user = getenv("LR");
    char cwd[256] = "";
    int fd;

    printf("image %s, workload %s\n", from ? from : "-", user ? user : "-");
    printf("cwd %s\n", getcwd(cwd, sizeof(cwd)) ? cwd : "?");
    tell_entries("/bin");
    tell_entries("/etc");
    fd = open("/bin/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    printf("root %s\n", fd < 0 ? "closed" : "open");
    fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    printf("work %s\n", fd < 0 ? "closed" : "open");
    fd = open("/tmp/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    printf("tmp %s\n", fd < 0 ? "closed" : "open");
    printf("arguments %d\n", argc - 1);
    for (int i = 1; i < argc; i++)
        tell_file(argv[i]);
    printf("preload %s\n", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "-");
    return argc > 1 ? 4 : 0;
}
