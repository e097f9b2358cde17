#!/usr/bin/env python3
"""Text of a job must remain comment, string or identifier in the emitted file. Every place where a job can have
its own text gets text that could become code. The emitted file is parsed as a compiler does it (trigraphs, joined
lines, lone carriage returns). Without comments and strings, it must equal the file of the same job with harmless
text, in C and in CUDA. The C must compile without a warning about comments.
  hostile_text.py AMPC            the test
  hostile_text.py --write FOLDER  the jobs, as seeds for the fuzzer"""
import os, re, subprocess, sys, tempfile

JOB = '''data points(n: int) { return %(source)s, %(labels)s }
module Net {
  fc = Linear(8, 4)
  def forward(x) {
    y = fc(x.to(f32))%(line)s
    return relu(y)
  }
}
model net = %(net)s
optimizer opt = SGD(net, lr=0.1, momentum=0.9)
precision f16
train x, y in points(64) with batch=16, epochs=2, name=%(name)s%(options)s {
  minimize cross_entropy(net(x), y) with opt%(post)s
}
eval x, y in points(64) with batch=16, name=%(eval)s {
  metric acc = accuracy(net(x), y)
}
infer probe(x: f32[4, 8]) { return net(x), argmax(net(x), -1) }
'''
CLASSES = 'csv("c.csv", "s", classes=["%s", "b", "c", "d, e"], samples=n)' # the names are in the file, too
LOADED = 'Net() { load("w", strip="%s", unused=["%s", "b, c"]) }' # names of tensors
PLAIN = {'line': '', 'post': '', 'name': '"t"', 'eval': '"e"', 'options': ', save="s"',
         'source': 'synthetic(n, [8])', 'labels': 'synthetic(n, [], i64, 0, 4)', 'net': 'Net()'}
CODE = '{int PWNED();PWNED();}'

# Ends of lines that are copied into // comments: characters that a compiler may take for a line end
# or for a joining with the next line, also at the column where the copy is cut.
ENDS = ['# C:\\data\\', '# C:\\data\\\t', '# a\\\v', '# a\\\f', '# a\\ \t ', '# a\\\\', '# a??/', '# a??/ ',
        '# \r' + CODE + '//', '# \r' + CODE + '\\', '# */' + CODE + '/*', '# /* ' + CODE, '# // ' + CODE,
        '# \x1b[31mPWNED', '# \xe2\x80\xa8' + CODE, '# \xe2\x80\xae' + CODE, '# \xc2\x85' + CODE,
        '# "' + CODE, "# '" + CODE, '# é ß 😀 \\'.encode().decode('latin1')]
NAMES = ['warm up', 'a,b', '*/' + CODE + '/*', '\\\\', '?\\?/', '\\"' + CODE + '\\"', '// ' + CODE,
         'a(void){} __attribute__((constructor)) void PWNED(void){', "'", '%s%n', '$(PWNED)', 'int', '1st',
         'größe'.encode().decode('latin1'), 'x' * 100, 't_1', 'a b', '5\\" pipe, round']
FILES = ['plain.amp', 'a b.amp', '*PWNED.amp', '\n' + CODE + '\n.amp', '\r' + CODE + '.amp', 'a\\', 'a??\\',
         'x\n#define PWNED .amp', '"' + CODE + '.amp', '-DPWNED.amp', '\x1b[31mPWNED.amp', '\xff.amp',
         '\xe2\x80\xaePWNED.amp']


def job(**places):
    return (JOB % dict(PLAIN, **places)).encode('latin1')


def jobs():
    """(name of the file, its text, the same job with harmless text)"""
    for end in ENDS:
        yield 'j.amp', job(line=' ' + end, post=' ' + end), job()
        for column in (72, 80):  # the emitted copy is cut near these
            for shift in range(-3, 4):
                text = 'minimize cross_entropy(net(x), y) with opt # '
                fill = '.' * (column + shift - len(text))
                cut = end[2:] + 'z' * 40
                if shift % 3 == 0: yield 'j.amp', job(post=' # ' + fill + cut), job()
    yield 'j.amp', job(line=' # C:\\').replace(b'\n', b'\r\n'), job()
    for name in NAMES:
        yield 'j.amp', job(name='"%s"' % name, eval='"e %s"' % name if len(name) < 90 else '"e"'), job()
        yield 'j.amp', job(labels=CLASSES % name), job(labels=CLASSES % 'a')
        yield 'j.amp', job(net=LOADED % (name, name)), job(net=LOADED % ('a', 'a'))
    yield 'j.amp', job(name='"a b"', eval='"a_b"'), job()
    yield 'j.amp', job(options=', save="\\"%s\\n\\\\"' % CODE), job()
    source = 'idx("%s\\n\\x1b\\\\?\\?/\\"*/", shape=[8])'
    yield 'j.amp', job(source=source % CODE), job(source='idx("a", shape=[8])')
    for name in FILES: yield name, job(), job()


# ---- C, parsed as a compiler does it -------------------------------------------------------------------------

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_of(text):
    text = text.replace('??/', '\\')
    text = re.sub('\r\n?', '\n', text)
    text = re.sub(r'\\[ \t\v\f\r]*\n', '', text)
    text = TOKEN.sub(lambda m: ' ' if m[0][0] == '/' else m[0][0] * 2, text)
    out = ''
    for line in text.split('\n'):  # the length of the user's text decides where long lines break
        line = re.sub(r'[ \t]+', ' ', line.strip(' \t'))
        out += '\n' + line + '\n' if line.startswith('#') else ' ' + line if line else ''
    return re.sub(r'\bstep_\w+', 'step', out)


def control_bytes(data):
    """Characters that a terminal or an editor may interpret."""
    text = data.decode('utf-8', 'surrogateescape')
    return re.findall('[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udcff]', text)


# A kernel with two values of the same name, and a third value with the name that tells them apart.
NAMESAKES = '''module Net {
  w = Parameter([8, 8]); x_%d = Parameter([8])
  def inner(x) { x = linear(x, w); return x }
  def forward(x) { a = inner(x); return x_%d * x * a + inner(a) }
}
model net = Net()
optimizer opt = SGD(net, lr=0.1)
data d(n: int) { return synthetic(n, [8]) }
train x in d(64) with batch=4 { minimize net(x).mean() with opt }
'''


class Tester:
    def __init__(self, ampc):
        self.ampc, self.bad, self.known, self.checked = os.path.abspath(ampc), 0, {}, set()
        self.headers = os.path.join(os.path.dirname(self.ampc), 'include')

    def failed(self, what, name, text):
        self.bad += 1
        print('FAILED: %s: file %r: %r' % (what, name, text))

    def emit(self, name, text, options):
        name = name.encode('latin1')
        with open(name, 'wb') as f: f.write(text)
        got = subprocess.run([self.ampc, *options, b'./' + name], capture_output=True)
        os.unlink(name)
        return got

    def compiles(self, text):
        cc = ['cc', '-std=gnu11', '-trigraphs', '-fsyntax-only', '-Wall', '-Werror=comment', '-Werror=trigraphs',
              '-Wno-unused', '-I' + self.headers, '-x', 'c', '-']
        return subprocess.run(cc, input=text, capture_output=True)

    def check(self, kind, name, text, twin):
        options = ['--emit=' + kind, '--target=' + ('cpu' if kind == 'c' else 'sm_80')]
        got = self.emit(name, text, options)
        if got.returncode or got.stderr: return self.failed('%s: %s' % (kind, got.stderr), name, text)
        if control_bytes(got.stdout): self.failed('%s: %s' % (kind, control_bytes(got.stdout)), name, text)
        code = code_of(got.stdout.decode('utf-8', 'surrogateescape'))
        if (kind, twin) not in self.known:
            plain = self.emit('j.amp', twin, options).stdout.decode()
            self.known[kind, twin] = code_of(plain)
        if 'PWNED' in code: self.failed(kind + ': code of the job', name, text)
        if code != self.known[kind, twin]: self.failed(kind + ': the code differs', name, text)
        if kind != 'c' or got.stdout in self.checked: return
        self.checked.add(got.stdout)
        built = self.compiles(got.stdout)
        if built.returncode: self.failed('cc: %s' % built.stderr.decode()[:400], name, text)

    def check_dumps(self, name, text):
        for dump in ('--emit=plan', '--emit=params', '--emit=ast', '--emit=graph', '--dump-after=lower', '--emit=memory'):
            got = self.emit(name, text, [dump])
            if got.returncode or control_bytes(got.stdout + got.stderr): self.failed(dump, name, text)

    def check_messages(self):
        for text in (b'model net = \x1b[31m\n', b'const \xc2\x9b31m = 1 # \x1b\xe2\x80\xae\n',
                     b'train x in p("\\x1b[31m\\n::error::") with name="\\x1b]0;x\\a" { }\n',
                     b'const a = "\\x1b[31m\\u202e" + 1\n'):
            for name in 'j.amp', '\x1b[31m\n::error::j.amp':
                for options in [], ['--error-format=json']:
                    got = self.emit(name, text, options)
                    if got.returncode != 1 or control_bytes(got.stderr) or b'\n::error' in got.stderr:
                        self.failed('a message: %r' % got.stderr, name, text)
        for option in '--\x1b[31m', '-Wno-\x1b[31m', '--target=\x1b[31m', '-D\x1b=1':
            got = subprocess.run([self.ampc, option, 'j.amp'], capture_output=True)
            if got.returncode == 0 or control_bytes(got.stderr): self.failed('an option', option, got.stderr)

    def check_arguments(self):
        for n in range(1, 9):
            text = (NAMESAKES % (n, n)).encode()
            got = self.emit('j.amp', text, ['--target=cpu', '-O2'])
            built = self.compiles(got.stdout)
            if got.returncode or built.returncode: self.failed('arguments: %s' % built.stderr, 'j.amp', text)

    def check_names(self):
        """Two blocks of one name, and names that cannot be printed, are refused."""
        for places in ({'name': '"A"', 'eval': '"A"'}, {'name': '"probe"'}, {'name': '""'}, {'name': '"\\x1b"'},
                       {'name': '"a\\nb"'}, {'name': '"\\xff"'}, {'name': '"%s"' % ('x' * 101)}):
            got = self.emit('j.amp', job(**places), [])
            if got.returncode != 1 or b'name' not in got.stderr: self.failed('accepted', 'j.amp', job(**places))

    def run(self):
        for name, text, twin in jobs():
            for kind in 'c', 'cuda': self.check(kind, name, text, twin)
        for name in FILES: self.check_dumps(name, job(name='"\\"*/,?\\?/"', options=', save="\\x1b\\n"'))
        self.check_messages()
        self.check_names()
        self.check_arguments()
        return self.bad != 0


def main():
    if sys.argv[1] == '--write':
        for i, (_, text, _) in enumerate(list(jobs())[::6]):  # the fuzzer finds the others
            with open(os.path.join(sys.argv[2], 'hostile_%d' % i), 'wb') as f: f.write(b'A' + text)
        return 0
    tester = Tester(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        return tester.run()


if __name__ == '__main__': sys.exit(main())
