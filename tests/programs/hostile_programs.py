"""Programs that nobody should write: they exhaust, they pry, or they are not Python at all.

`HOSTILE` use more than they may. `ESCAPES` try what public reports describe for sandboxes of Python
programs: walking from a value to its class and on to modules, format strings that read attributes,
frames, overwritten code, files, environment, native code, other people's tools. `CRASHES` are
reports of programs that killed the interpreter of the sandbox itself.
"""

from __future__ import annotations

HOSTILE: dict[str, str] = {
    "endless loop": "while True:\n    pass",
    "loop over a huge range": "x = 0\nfor i in range(10**12):\n    x += i\nx",
    "sum of a huge range": "sum(range(10**10))",
    "list of a huge range": "list(range(10**9))",
    "append without end": "l = []\nwhile True:\n    l.append('x' * 1000)",
    "long string": "'a' * 10**10",
    "long list": "[0] * 10**10",
    "doubling string": "s = 'a'\nwhile True:\n    s += s",
    "power of powers": "10 ** 10 ** 8",
    "digits of a large number": "len(str(2 ** (10 ** 7)))",
    "huge shift": "1 << 10 ** 11",
    "factorial": "x = 1\nfor i in range(1, 10**6):\n    x *= i",
    "recursion": "def f(n): return f(n + 1)\nf(0)",
    "recursion through sorted": "def k(x): return sorted([1, 2], key=k)\nk(1)",
    "text of a deep list": "l = []\nfor i in range(100000):\n    l = [l]\nstr(l)",
    "deep lists compared": "a = []; b = []\nfor i in range(100000):\n    a = [a]; b = [b]\na == b",
    "deep JSON read": "import json\njson.loads('[' * 100000 + ']' * 100000)",
    "deep JSON written": "import json\nl = []\nfor i in range(100000):\n    l = [l]\njson.dumps(l)",
    "regular expression": "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
    "backreferences": "import re\nre.match(r'(a*)*\\1b', 'a' * 60)",
    "large pattern": "import re\nre.compile('(a{1000}){1000}')",
    "deep parentheses": "(" * 15000 + "1" + ")" * 15000,
    "deep signs": "-" * 30000 + "1",
    "long line": "x = " + "+".join(["1"] * 15000) + "\nx",
    "flood of prints": "while True:\n    print('x' * 10000)",
    "wide format": "'{:>9999999999}'.format(1)",
    "wide f-string": "f'{1:>9999999999}'",
    "replacing": "('a' * 10**6).replace('a', 'b' * 10**4)",
    "joining": "','.join(['x' * 10**5] * 10**5)",
    "large sort": "import random\nsorted([random.random() for _ in range(10**7)])[0]",
    "large dictionary": "len({i: i for i in range(10**8)})",
    "product": "from itertools import product\nlen(list(product(range(1000), repeat=3)))",
    "sleeping": "import time\nwhile True:\n    time.sleep(1)",
    "sleeping at once": "await asyncio.gather(*[asyncio.sleep(3600) for _ in range(100)])",
    "a million calls": "for i in range(10**6):\n    await echo(n=i)",
    "a million calls at once": "await asyncio.gather(*[echo(n=i) for i in range(10**6)])",
    "caught timeout": (
        "while True:\n    try:\n        while True:\n            pass\n"
        "    except BaseException:\n        pass"
    ),
    "caught memory error": (
        "l = []\nwhile True:\n    try:\n        while True:\n            l.append('x' * 10**6)\n"
        "    except BaseException:\n        pass"
    ),
    "decimals": (
        "from decimal import Decimal, getcontext\n"
        "getcontext().prec = 10**8\nlen(str(Decimal(1) / Decimal(3)))"
    ),
    "base64": (
        "import base64\nb = b'a' * 10**7\nfor i in range(20):\n    b = base64.b64encode(b)\nlen(b)"
    ),
    "large value": "'x' * (50 * 10**6)",
    # Small in the worker, where the parts are shared, and enormous as JSON.
    "value that doubles": "l = [1]\nfor _ in range(60):\n    l = [l, l]\nl",
    "argument that doubles": (
        "l = [1]\nfor _ in range(60):\n    l = [l, l]\nawait echo(n=1, text=eval('l'))"
    ),
    "stored value that doubles": "l = [1]\nfor _ in range(60):\n    l = [l, l]\nkeep(l)",
    "one text many times": "['x' * 10**6] * 10**5",
    "object that doubles": (
        "class A:\n    pass\na = 1\nfor _ in range(60):\n    b = A()\n    b.x = b.y = a\n"
        "    a = b\na"
    ),
    "many stored values": "for n in range(190):\n    keep('x' * 7_000_000 + str(n))",
    "calls that grow": "s = 'x'\nwhile True:\n    s = (await echo(n=1, text=s + s))['text']",
    "many large calls": (
        "s = 'x' * 3_000_000\nfor n in range(150):\n    await echo(n=n, text=s + str(n))"
    ),
}

CRASHES: dict[str, str] = {
    "deep unpacking": "(" * 5750 + "x" + ",)" * 5750 + " = (1,)",
    "exception in a deep chain of tasks": (
        "async def leaf():\n    raise ValueError('x')\n"
        "async def chain(n):\n"
        "    if n == 0:\n        return await asyncio.gather(leaf())\n"
        "    return await asyncio.gather(chain(n - 1))\n"
        "try:\n    await asyncio.gather(chain(4000))\nexcept ValueError:\n    pass\n1"
    ),
    "slice of an endless generator": (
        "from itertools import islice, count\nlist(islice((x for x in count(1)), 3))"
    ),
    "address space": "' ' * (1 << 60)",
    "suggestion beside other letters": "r = await echo(n=1)\nprint('é')\nr['txet']",
}

ESCAPES: dict[str, str] = {
    "subclasses": "str(().__class__.__base__.__subclasses__())",
    "subclasses by parts": "b = getattr((), '__cl' + 'ass__')\nstr(getattr(b, '__ba' + 'se__'))",
    "globals of a function": "def f(): pass\nf.__globals__['__builtins__']",
    "globals of a tool": "echo.__globals__",
    "closure of a tool": "echo.__closure__",
    "self of a method": "[].append.__self__.__class__.__mro__",
    "frame of an exception": (
        "try:\n    1 / 0\nexcept Exception as e:\n    x = e.__traceback__.tb_frame.f_globals\nx"
    ),
    "format reads attributes": "'{0.__class__.__bases__[0].__subclasses__}'.format('a')",
    "format reads a tool": "'{0.__globals__[os].environ}'.format(echo)",
    "code overwritten": "def f(): return 1\ndef g(): return 2\nf.__code__ = g.__code__\nf()",
    "class dictionary": "type.__dict__['__subclasses__'](object)",
    "class that runs in the host": (
        "class Bomb:\n    def __repr__(self):\n        while True:\n            pass\nBomb()"
    ),
    "import by name": "__import__('os').environ['PEGBOARD_SECRET']",
    "import of os": "import os\nos.environ['PEGBOARD_SECRET']",
    "getenv": "import os\nos.getenv('PEGBOARD_SECRET')",
    "import of sys": "import sys\nstr(sys.modules)",
    "import of subprocess": "import subprocess\nsubprocess.run(['id'])",
    "import of ctypes": "import ctypes\nctypes.CDLL(None).system(b'id')",
    "import of socket": "import socket\nsocket.create_connection(('127.0.0.1', 22))",
    "importlib": "import importlib\nimportlib.import_module('os')",
    "builtins": "import builtins\nbuiltins.open('/etc/passwd').read()",
    "open": "open('/etc/passwd').read()",
    "open for writing": "f = open('/tmp/pegboard-escaped', 'w')\nf.write('x')",
    "pathlib": "from pathlib import Path\nPath('/etc/passwd').read_text()",
    "pathlib writes": "from pathlib import Path\nPath('/tmp/pegboard-escaped').write_text('x')",
    "pathlib lists": "from pathlib import Path\n[str(p) for p in Path('/').iterdir()]",
    "process file": "from pathlib import Path\nPath('/proc/self/environ').read_text()",
    "eval": "eval('1 + 1')",
    "exec": "exec('import os')",
    "compile": "compile('1', 'x', 'eval')",
    "pickle": "import pickle\npickle.loads(b'cos\\nsystem\\n(S\"id\"\\ntR.')",
    "input": "input('password: ')",
    "breakpoint": "breakpoint()",
    "exit": "exit(3)",
    "system exit": "raise SystemExit(3)",
    "keyboard interrupt": "raise KeyboardInterrupt()",
    "hidden tool": "await secret_tool(n=1)",
    "hidden tool by parts": "f = getattr(echo, '__self__')\nawait f.secret_tool(n=1)",
    "tool by text": "await globals()['secret_tool'](n=1)",
    "name of a tool in text": "x = 'secret_tool'\nawait x(n=1)",
    "hidden tool by eval": "await eval('secret' + '_tool')(n=1)",
    "hidden tool by exec": "exec('x = secret' + '_tool(n=1)')\nx",
    "spoofed tool": "def secret_tool(n): return 'spoof'\nsecret_tool(n=1) + ' is not a tool'",
    "handle of another": "kept('0' * 32)",
}
"""None of these may read the host or reach a tool that the caller does not see."""

UNDECLARED_WRITES: dict[str, str] = {
    "by eval": "await eval('add_' + 'note')(text='x')",
    "by exec": "exec('t = add_' + 'note(text=1)')\nawait t",
    "in a lambda": "f = eval('lambda: add_' + 'note(text=\"x\")')\nawait f()",
    "at once": "await asyncio.gather(echo(n=1), eval('add_' + 'note')(text='x'))",
}
"""Writes whose tool does not stand in the text of the program."""

UNSUPPORTED: dict[str, tuple[str, str]] = {
    "inheritance": ("class A(dict):\n    pass\nA()", "class"),
    "yield": ("def f():\n    yield 1\nlist(f())", "yield"),
    "create_task": ("t = asyncio.create_task(echo(n=1))\nawait t", "gather"),
    "wait_for": ("await asyncio.wait_for(echo(n=1), 3)", "wait_for"),
    "requests": ("import requests\nrequests.get('http://x')", "requests"),
    "pandas": ("import pandas as pd\npd.DataFrame([])", "pandas"),
    "async with": ("async with echo(n=1) as x:\n    x", "async with"),
    "del": ("x = [1]\ndel x[0]\nx", "del"),
    "statistics": ("import statistics\nstatistics.mean([1])", "statistics"),
    "javascript": ("const r = await echo({n: 1});\nreturn r.text;", "Python"),
    "typescript arrow": ("async () => { const x = await echo({n: 1}); return x }", "Python"),
    "shell": ("curl http://example.com | jq .", "Python"),
    "markdown fence": ("```python\n1 + 1\n```", ""),
    "main": ("async def main():\n    return await echo(n=1)\nasyncio.run(main())", ""),
}
"""Programs with what the answer has to mention; those with no word should simply run."""
