#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run rdma-core's own tests, those of the installed package, and speak TAP.

In the guest; run-tests starts it there.  Each test is a process of its own, so
that one which crashes or hangs fails alone.  Without a baseline every failure is
one; with a baseline (a file of "TEST STATUS[,STATUS] [REASON]" lines, the statuses
that the unmodified kernel modules gave in several runs) a test that fails there too
is a known failure, and one that got worse is a failure.
"""
import argparse
import ctypes
import fnmatch
import gc
import gzip
import json
import os
import select
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
                test, statuses = line.split()[:2]
                baseline[test] = statuses.split(',')
    return baseline


def all_tests(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from all_tests(test)
        else:
            yield test


class Verdict(unittest.TestResult):
    """What one test comes to, its subtests included."""

    def __init__(self):
        super().__init__()
        self.status = 'ok'
        self.detail = ''

    def note(self, status, detail):
        if RANK[status] > RANK[self.status]:
            self.status, self.detail = status, detail

    def addSkip(self, test, reason):
        self.note('skipped', reason)

    def addError(self, test, err):
        self.note('failed', ''.join(traceback.format_exception(*err)))

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err:
            self.addError(test, err)

    def addUnexpectedSuccess(self, test):
        self.note('failed', 'unexpected success')


def run_test(test, timeout):
    """Status of a test and what there is to say about it."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        verdict = Verdict()
        unittest.TestSuite([test]).run(verdict)
        os.write(writer, json.dumps([verdict.status, verdict.detail[-4000:]]).encode() + b'\n')
        os._exit(0)
    os.close(writer)
    answer = b''
    # Up to the newline: a process that the test left behind may keep the pipe open.
    while not answer.endswith(b'\n'):
        if not select.select([reader], [], [], timeout)[0]:
            os.kill(child, signal.SIGKILL)
            answer = json.dumps(['failed', f'no end after {timeout} s']).encode() + b'\n'
            break
        part = os.read(reader, 65536)
        if not part:
            break
        answer += part
    os.close(reader)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if answer.endswith(b'\n'):
        return json.loads(answer)
    return ['failed', f'killed by {signal.Signals(-code).name}' if code < 0 else f'exit code {code}']


def judge(status, known, no_skip):
    """Whether a status is bad in the light of the known ones, and TAP's directive."""
    worst = max((RANK[k] for k in known), default=RANK['ok' if no_skip else 'skipped'])
    if RANK[status] > worst:
        return True, ''
    if status == 'failed':
        return False, ' # TODO fails with the unmodified modules, too'
    return False, ' # SKIP' if status == 'skipped' else ''


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--only', default='*', help='pattern that the names of tests match')
    parser.add_argument('--baseline', help='statuses with the unmodified kernel modules')
    parser.add_argument('--no-skip', action='store_true', help='a test that skips fails')
    parser.add_argument('--status', help='file for "TEST STATUS [REASON]" lines; failures are fine then')
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

    baseline = read_baseline(options.baseline) if options.baseline else {}
    statuses = {}
    bad = 0
    print('TAP version 13')
    print(f'1..{suite.countTestCases()}', flush=True)
    for number, test in enumerate(suite, 1):
        name = test.id()
        known = baseline.get(name, [])
        status, detail = run_test(test, options.test_timeout)
        statuses[name] = f'{status} {(detail.splitlines() or [""])[-1]}'.rstrip()
        is_bad, directive = judge(status, known, options.no_skip)
        bad += is_bad
        if status == 'failed' or is_bad:
            print(*(f'# {line}' for line in detail.splitlines()), sep='\n')
        if is_bad and known:
            print(f'# {status}; with the unmodified modules: {", ".join(known)}')
        if directive == ' # SKIP':
            directive += f' {" ".join(detail.split())}'
        print(f'{"not ok" if is_bad or status == "failed" else "ok"} {number} - {name}{directive}',
              flush=True)
    if options.status:
        with open(options.status, 'w', encoding='ascii', errors='backslashreplace') as out:
            out.writelines(f'{test} {status}\n' for test, status in sorted(statuses.items()))
        return 0
    return 1 if bad or not statuses else 0


if __name__ == '__main__':
    sys.exit(main())
