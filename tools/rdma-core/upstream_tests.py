#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run rdma-core's own tests, those of the installed package, and speak TAP.

In the guest; run-tests starts it there.  Without a baseline every failure is
one; with a baseline (a file of "TEST STATUS[,STATUS]" lines, the statuses that
the unmodified kernel modules gave in several runs) a test that fails there too
is a TODO, and one that got worse is a failure.
"""
import argparse
import ctypes
import fnmatch
import gc
import gzip
import os
import signal
import sys
import tempfile
import traceback
import unittest

PACKAGED = '/usr/share/doc/rdma-core/tests'
RANK = {'ok': 0, 'skipped': 1, 'failed': 2}


def unpack_tests():
    """Debian compresses what is below /usr/share/doc."""
    folder = tempfile.mkdtemp()
    os.mkdir(f'{folder}/tests')
    for name in os.listdir(PACKAGED):
        path = f'{PACKAGED}/{name}'
        opener = gzip.open if name.endswith('.gz') else open
        if os.path.isfile(path):
            with opener(path, 'rb') as source:
                with open(f'{folder}/tests/{name.removesuffix(".gz")}', 'wb') as copy:
                    copy.write(source.read())
    return folder


def mend_add_ref():
    """Let DmaBufMR find DmaBuf.add_ref().

    DmaBufMR.__init__ in pyverbs/mr.pyx calls add_ref() of its DmaBuf argument.
    That is a cdef method, which only C code sees, and since rdma-core commit
    b4785f9f5 the argument is no longer declared as a DmaBuf: an AttributeError
    after each successful registration.  The method keeps track of MRs that
    depend on the buffer, to close them with it; the tests close theirs.
    """
    from pyverbs.dmabuf import DmaBuf
    if hasattr(DmaBuf, 'add_ref'):
        return
    gc.get_referents(DmaBuf.__dict__)[0]['add_ref'] = lambda self, mr: None
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(DmaBuf))


def read_baseline(path):
    baseline = {}
    with open(path, encoding='ascii') as lines:
        for line in lines:
            if not line.startswith('#') and line.strip():
                test, statuses = line.split()
                baseline[test] = statuses.split(',')
    return baseline


def all_tests(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from all_tests(test)
        else:
            yield test


class TapResult(unittest.TestResult):
    """Prints a line for each test, and judges it."""

    def __init__(self, options):
        super().__init__()
        self.options = options
        self.baseline = read_baseline(options.baseline) if options.baseline else {}
        self.statuses = {}
        self.number = 0
        self.bad = 0
        self.verdict = None

    def startTest(self, test):
        super().startTest(test)
        self.verdict = ('ok', '')
        signal.alarm(self.options.test_timeout)

    def stopTest(self, test):
        signal.alarm(0)
        self.report(test.id(), *self.verdict)
        super().stopTest(test)
        self.verdict = None

    def note(self, test, status, detail):
        """A class whose set-up fails or skips is reported, but never started."""
        if self.verdict is None:
            self.report(test.id(), status, detail)
        elif RANK[status] >= RANK[self.verdict[0]]:
            self.verdict = (status, detail)

    def addSkip(self, test, reason):
        self.note(test, 'skipped', reason)

    def addError(self, test, err):
        self.note(test, 'failed', ''.join(traceback.format_exception(*err)))

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err:
            self.addError(test, err)

    def addUnexpectedSuccess(self, test):
        self.note(test, 'failed', 'unexpected success')

    def report(self, test, status, detail):
        self.statuses[test] = status
        self.number += 1
        known = self.baseline.get(test, [])
        worse = RANK[status] > max((RANK[k] for k in known), default=RANK['skipped'])
        if status == 'skipped' and known and not worse or status == 'skipped' and not self.options.no_skip:
            result, directive = 'ok', f' # SKIP {" ".join(detail.split())}'
        elif status == 'failed' and known and not worse:
            result, directive = 'not ok', ' # TODO fails with the unmodified modules, too'
        elif status == 'ok':
            result, directive = 'ok', ''
        else:
            result, directive = 'not ok', ''
            self.bad += 1
        if status != 'ok' and not directive.startswith(' # SKIP'):
            for line in detail.rstrip().splitlines():
                print(f'# {line}')
        if known and worse:
            print(f'# {status}; with the unmodified modules: {", ".join(known)}')
        print(f'{result} {self.number} - {test}{directive}', flush=True)


def too_long(_signal, _frame):
    raise TimeoutError('the test does not end')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--only', default='*', help='pattern that the names of tests match')
    parser.add_argument('--baseline', help='statuses with the unmodified kernel modules')
    parser.add_argument('--no-skip', action='store_true', help='a test that skips fails')
    parser.add_argument('--status', help='file for "TEST STATUS" lines; failures are fine then')
    parser.add_argument('--test-timeout', type=int, default=300, help='seconds')
    parser.add_argument('arguments', nargs='*', help="for rdma-core's tests, after --")
    options = parser.parse_args()

    folder = unpack_tests()
    sys.path[:0] = [folder, f'{folder}/tests']
    mend_add_ref()
    from args_parser import parser as upstream
    sys.argv[1:] = options.arguments
    upstream.parse_args()
    import tests
    suite = unittest.TestSuite(
        test for test in all_tests(unittest.defaultTestLoader.loadTestsFromModule(tests))
        if fnmatch.fnmatch(test.id(), options.only))

    signal.signal(signal.SIGALRM, too_long)
    result = TapResult(options)
    print('TAP version 13')
    suite.run(result)
    print(f'1..{result.number}')
    if options.status:
        with open(options.status, 'w', encoding='ascii') as out:
            out.writelines(f'{test} {status}\n' for test, status in sorted(result.statuses.items()))
        return 0
    return 1 if result.bad or not result.number else 0


if __name__ == '__main__':
    sys.exit(main())
