# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's FileStore at the end of two pipes: a method and its arguments in, its result out.

    use_filestore.py    reads lines such as ["open", PATH] and ["set", "key", "value"]; prints a line of JSON for each
"""

import datetime
import json
import sys
import time

import torch.distributed as dist


def plain(result):
    if isinstance(result, bytes):
        return result.decode("latin-1")
    return [plain(each) for each in result] if isinstance(result, list) else result


class User:
    """What the store itself does not have."""

    def open(self, path):
        self.store = dist.FileStore(path)
        self.store.set_timeout(datetime.timedelta(seconds=60))

    def close(self):
        del self.store

    def add_many(self, key, number, times):
        return [self.store.add(key, number) for _ in range(times)]

    def count_until(self, key, end):
        """Counts by compare-and-set until the key `end` exists; how often it was this one's turn."""
        turns = 0
        while not self.store.check([end]):
            value = self.store.get(key)
            desired = b"%d after PyTorch's %d" % (int(value.split()[0]) + 1, turns)
            turns += self.store.compare_set(key, value.decode(), desired.decode()) == desired
            time.sleep(0.03)  # lets the other side have a turn
        return turns


def main():
    user = User()
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        try:
            answer = plain(getattr(user if hasattr(user, method) else user.store, method)(*arguments))
        except (RuntimeError, ValueError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


main()
