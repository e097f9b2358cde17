-- Run by nvim.sh in headless Neovim: diagnostics and hover of `amp lsp`, through Neovim's own client.
local amp, job = os.getenv("AMP"), os.getenv("JOB")

local function fail(what)
  io.stderr:write("FAILED: " .. what .. "\n")
  vim.cmd("cquit")
end

local function wait_for(what, done)
  if not vim.wait(20000, done, 20) then fail(what) end
end

vim.cmd("edit " .. job)
local id = vim.lsp.start_client({ name = "amp", cmd = { amp, "lsp" }, root_dir = vim.fn.getcwd() })
vim.lsp.buf_attach_client(0, id)
wait_for("no diagnostics of the mistake", function() return #vim.diagnostic.get(0) == 1 end)
local d = vim.diagnostic.get(0)[1]
if d.lnum ~= 3 or d.col ~= 20 or not d.message:find("unknown name `rel`") then fail(vim.inspect(d)) end

-- the cure: columns of Neovim are bytes, and the line has characters of several bytes
vim.api.nvim_buf_set_text(0, 3, 20, 3, 23, { "relu" })
wait_for("the mistake is still reported", function() return #vim.diagnostic.get(0) == 0 end)
local answer = vim.lsp.buf_request_sync(0, "textDocument/hover", {
  textDocument = vim.lsp.util.make_text_document_params(),
  position = { line = 3, character = 18 },
}, 20000)
local value = answer and answer[id] and answer[id].result and answer[id].result.contents.value or ""
if not value:find("relu(..): f16[2, 8]", 1, true) then fail("hover: " .. vim.inspect(answer)) end
vim.lsp.stop_client(id)
vim.cmd("qall!")
