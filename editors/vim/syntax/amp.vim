" Colours of jobs of ampc.
if exists('b:current_syntax')
  finish
endif
syn include @ampC syntax/c.vim
unlet! b:current_syntax
syn sync fromstart

execute 'syn keyword ampLayer' substitute('@layers@', '|', ' ', 'g')
execute 'syn keyword ampFunction contained' substitute('@functions@', '|', ' ', 'g')
syn match ampCall /\v<\h\w*\ze\s*\(/ contains=ampFunction,ampLayer transparent
syn match ampArgument /\v<\h\w*\ze\=\=@!/
" After `.` and before a single `=` these are names.
syn match ampKeyword /\v\.@1<!<%(@keywords@)>%(\s*\=\=@!)@!/
syn match ampConstant /\v\.@1<!<%(@constants@)>%(\s*\=\=@!)@!/
syn match ampType /\v<%(@types@)>/
syn match ampDeclaration /\v%(^|;\s*)@9<=%(@declarations@)>\ze\s+[A-Za-z_"]/
syn match ampDeclaration /\v<def>\ze\s+\h/ nextgroup=ampName skipwhite
syn match ampDeclaration /\v%(^|;\s*)@9<=%(const|data|dim|infer|model|module|op|optimizer)>\ze\s+\h/
  \ nextgroup=ampName skipwhite
syn match ampName /\h\w*/ contained

syn match ampNumber /\v<\d+%(_\d+)*%(\.\d+%(_\d+)*)?%([eE][-+]?\d+%(_\d+)*)?>/
syn match ampEscape /\\./ contained
syn region ampString start=/"/ skip=/\\./ end=/"/ oneline contains=ampEscape
syn region ampCode matchgroup=ampString start=/"""/ end=/"""/ contains=@ampC keepend
syn match ampComment /#.*/ contains=@Spell

hi def link ampLayer Structure
hi def link ampFunction Function
hi def link ampArgument Identifier
hi def link ampKeyword Statement
hi def link ampConstant Constant
hi def link ampType Type
hi def link ampDeclaration Keyword
hi def link ampName Identifier
hi def link ampNumber Number
hi def link ampEscape SpecialChar
hi def link ampString String
hi def link ampComment Comment
let b:current_syntax = 'amp'
