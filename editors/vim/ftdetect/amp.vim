autocmd BufNewFile,BufRead *.amp setfiletype amp
