import sys; sys.path.insert(0,'.')
import nets, os, warnings
warnings.filterwarnings('ignore')
for n in (sys.argv[2:] or nets.NETS):
    try: nets.make(n, sys.argv[1]+'/'+n, True)
    except Exception as e: print(n, type(e), str(e)[:300])
