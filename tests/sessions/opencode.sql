CREATE TABLE `session` (
  `id` text PRIMARY KEY,
  `project_id` text NOT NULL,
  `workspace_id` text,
  `parent_id` text,
  `slug` text NOT NULL,
  `directory` text NOT NULL,
  `path` text,
  `title` text NOT NULL,
  `version` text NOT NULL,
  `share_url` text,
  `summary_additions` integer,
  `summary_deletions` integer,
  `summary_files` integer,
  `summary_diffs` text,
  `metadata` text,
  `cost` real DEFAULT 0 NOT NULL,
  `tokens_input` integer DEFAULT 0 NOT NULL,
  `tokens_output` integer DEFAULT 0 NOT NULL,
  `tokens_reasoning` integer DEFAULT 0 NOT NULL,
  `tokens_cache_read` integer DEFAULT 0 NOT NULL,
  `tokens_cache_write` integer DEFAULT 0 NOT NULL,
  `revert` text,
  `permission` text,
  `agent` text,
  `model` text,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `time_compacting` integer,
  `time_archived` integer
);
INSERT INTO session VALUES ('ses_e13b141abffe6zhxdM09iRT2QJ', 'bba4b2327b9e6370e49549553853347c63885340', NULL, NULL, 'calm-lagoon', '/home/ana/demo', '', 'I run the tests first.', '1.18.33', NULL, 0, 0, 0, NULL, NULL, 0.0, 50, 25, 0, 0, 0, NULL, '[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]', 'build', '{"id":"m","providerID":"fake","variant":"default"}', 1794965945940, 1794965952679, NULL, NULL);
CREATE TABLE `message` (
  `id` text PRIMARY KEY,
  `session_id` text NOT NULL,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `data` text NOT NULL
);
INSERT INTO message VALUES ('msg_1ec4ec00b001yOJcOvpJWmwA3f', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965946379, 1794965952613, '{"role": "user", "time": {"created": 1794965946379}, "agent": "build", "model": {"providerID": "fake", "modelID": "m"}, "summary": {"diffs": [{"file": "src/login.ts", "patch": "Index: src/login.ts\n===================================================================\n--- src/login.ts\t\n+++ src/login.ts\t\n@@ -1,5 +1,6 @@\n export function login(user: string | null) {\n   if (user) {\n     return { user };\n   }\n+  return undefined;\n }\n", "additions": 1, "deletions": 0, "status": "modified"}]}}');
INSERT INTO message VALUES ('msg_1ec4ec7fd001hm7wp9pT7rxwU4', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965948413, 1794965951334, '{"parentID": "msg_1ec4ec00b001yOJcOvpJWmwA3f", "role": "assistant", "mode": "build", "agent": "build", "path": {"cwd": "/home/ana/demo", "root": "/home/ana/demo"}, "cost": 0, "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "modelID": "m", "providerID": "fake", "time": {"created": 1794965948413, "completed": 1794965951333}, "finish": "tool-calls"}');
INSERT INTO message VALUES ('msg_1ec4ed369001U7g8Txg6qsfVvc', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965951337, 1794965951811, '{"parentID": "msg_1ec4ec00b001yOJcOvpJWmwA3f", "role": "assistant", "mode": "build", "agent": "build", "path": {"cwd": "/home/ana/demo", "root": "/home/ana/demo"}, "cost": 0, "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "modelID": "m", "providerID": "fake", "time": {"created": 1794965951337, "completed": 1794965951809}, "finish": "tool-calls"}');
INSERT INTO message VALUES ('msg_1ec4ed54600127J6o24pft77Gb', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965951814, 1794965952124, '{"parentID": "msg_1ec4ec00b001yOJcOvpJWmwA3f", "role": "assistant", "mode": "build", "agent": "build", "path": {"cwd": "/home/ana/demo", "root": "/home/ana/demo"}, "cost": 0, "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "modelID": "m", "providerID": "fake", "time": {"created": 1794965951814, "completed": 1794965952123}, "finish": "tool-calls"}');
INSERT INTO message VALUES ('msg_1ec4ed67e0012Rd22FL01YfXXR', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965952126, 1794965952507, '{"parentID": "msg_1ec4ec00b001yOJcOvpJWmwA3f", "role": "assistant", "mode": "build", "agent": "build", "path": {"cwd": "/home/ana/demo", "root": "/home/ana/demo"}, "cost": 0, "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "modelID": "m", "providerID": "fake", "time": {"created": 1794965952126, "completed": 1794965952506}, "finish": "tool-calls"}');
INSERT INTO message VALUES ('msg_1ec4ed7fe001o45hFTStcqftH2', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965952510, 1794965952672, '{"parentID": "msg_1ec4ec00b001yOJcOvpJWmwA3f", "role": "assistant", "mode": "build", "agent": "build", "path": {"cwd": "/home/ana/demo", "root": "/home/ana/demo"}, "cost": 0, "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "modelID": "m", "providerID": "fake", "time": {"created": 1794965952510, "completed": 1794965952671}, "finish": "stop"}');
CREATE TABLE `part` (
  `id` text PRIMARY KEY,
  `message_id` text NOT NULL,
  `session_id` text NOT NULL,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `data` text NOT NULL
);
INSERT INTO part VALUES ('prt_1ec4ec022001ye8nzMyRTsho89', 'msg_1ec4ec00b001yOJcOvpJWmwA3f', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965948385, 1794965948388, '{"type": "text", "text": "\"Fix the failing login tests\""}');
INSERT INTO part VALUES ('prt_1ec4ecefd001v9VLo3MMFSA1i9', 'msg_1ec4ec7fd001hm7wp9pT7rxwU4', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965950206, 1794965950209, '{"snapshot": "07602d83d8b4a32deed613a7116041a5d87aa4a5", "type": "step-start"}');
INSERT INTO part VALUES ('prt_1ec4ecf020011WTZWbnSyQBiJD', 'msg_1ec4ec7fd001hm7wp9pT7rxwU4', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965950210, 1794965950274, '{"type": "text", "text": "I run the tests first.", "time": {"start": 1794965950210, "end": 1794965950272}}');
INSERT INTO part VALUES ('prt_1ec4ecf09001UYj50rEDUsyHho', 'msg_1ec4ec7fd001hm7wp9pT7rxwU4', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965950217, 1794965951243, '{"type": "tool", "tool": "bash", "callID": "call_17949659501901152370", "state": {"status": "completed", "input": {"command": "npm test", "description": "Run tests"}, "output": "\n> demo@1.0.0 test\n> node check.js\n\nsrc/login.ts(1,17): error TS7030: Not all code paths return a value.\nFound 1 error.\n", "metadata": {"output": "\n> demo@1.0.0 test\n> node check.js\n\nsrc/login.ts(1,17): error TS7030: Not all code paths return a value.\nFound 1 error.\n", "exit": 2, "truncated": false}, "title": "npm test", "time": {"start": 1794965950260, "end": 1794965951242}}}');
INSERT INTO part VALUES ('prt_1ec4ed33100131V0Bu05w75umc', 'msg_1ec4ec7fd001hm7wp9pT7rxwU4', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965951281, 1794965951282, '{"reason": "tool-calls", "snapshot": "07602d83d8b4a32deed613a7116041a5d87aa4a5", "type": "step-finish", "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "cost": 0}');
INSERT INTO part VALUES ('prt_1ec4ed44200143QK1ivYOGwekK', 'msg_1ec4ed369001U7g8Txg6qsfVvc', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965951554, 1794965951556, '{"snapshot": "07602d83d8b4a32deed613a7116041a5d87aa4a5", "type": "step-start"}');
INSERT INTO part VALUES ('prt_1ec4ed445001KKf1czY4JBXz97', 'msg_1ec4ed369001U7g8Txg6qsfVvc', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965951557, 1794965951634, '{"type": "tool", "tool": "read", "callID": "call_17949659515404957910", "state": {"status": "completed", "input": {"filePath": "/home/ana/demo/src/login.ts"}, "output": "<path>/home/ana/demo/src/login.ts</path>\n<type>file</type>\n<content>\n1: export function login(user: string | null) {\n2:   if (user) {\n3:     return { user };\n4:   }\n5: }\n\n(End of file - total 5 lines)\n</content>", "metadata": {"preview": "export function login(user: string | null) {\n  if (user) {\n    return { user };\n  }\n}", "truncated": false, "loaded": [], "display": {"type": "file", "path": "/home/ana/demo/src/login.ts", "text": "export function login(user: string | null) {\n  if (user) {\n    return { user };\n  }\n}", "lineStart": 1, "lineEnd": 5, "totalLines": 5, "truncated": false}}, "title": "src/login.ts", "time": {"start": 1794965951574, "end": 1794965951633}}}');
INSERT INTO part VALUES ('prt_1ec4ed4d2001fnHy1y6DWv57pE', 'msg_1ec4ed369001U7g8Txg6qsfVvc', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965951698, 1794965951704, '{"reason": "tool-calls", "snapshot": "07602d83d8b4a32deed613a7116041a5d87aa4a5", "type": "step-finish", "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "cost": 0}');
INSERT INTO part VALUES ('prt_1ec4ed587001lF8TY5uf0GantN', 'msg_1ec4ed54600127J6o24pft77Gb', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965951879, 1794965951880, '{"snapshot": "07602d83d8b4a32deed613a7116041a5d87aa4a5", "type": "step-start"}');
INSERT INTO part VALUES ('prt_1ec4ed58a0015Szj77t2Wizdfb', 'msg_1ec4ed54600127J6o24pft77Gb', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965951882, 1794965951906, '{"type": "text", "text": "Not all code paths return a value, so TS7030 is raised. I add an explicit return at the end.", "time": {"start": 1794965951882, "end": 1794965951905}}');
INSERT INTO part VALUES ('prt_1ec4ed5900012Fe8drho46dJIl', 'msg_1ec4ed54600127J6o24pft77Gb', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965951888, 1794965951973, '{"type": "tool", "tool": "edit", "callID": "call_17949659518653737060", "state": {"status": "completed", "input": {"filePath": "/home/ana/demo/src/login.ts", "oldString": "    return { user };\n  }\n}", "newString": "    return { user };\n  }\n  return undefined;\n}"}, "output": "Edit applied successfully.", "metadata": {"diagnostics": {}, "diff": "Index: /home/ana/demo/src/login.ts\n===================================================================\n--- /home/ana/demo/src/login.ts\n+++ /home/ana/demo/src/login.ts\n@@ -1,5 +1,6 @@\n export function login(user: string | null) {\n   if (user) {\n     return { user };\n   }\n+  return undefined;\n }\n", "filediff": {"file": "/home/ana/demo/src/login.ts", "patch": "Index: /home/ana/demo/src/login.ts\n===================================================================\n--- /home/ana/demo/src/login.ts\n+++ /home/ana/demo/src/login.ts\n@@ -1,5 +1,6 @@\n export function login(user: string | null) {\n   if (user) {\n     return { user };\n   }\n+  return undefined;\n }\n", "additions": 1, "deletions": 0}, "truncated": false}, "title": "src/login.ts", "time": {"start": 1794965951899, "end": 1794965951972}}}');
INSERT INTO part VALUES ('prt_1ec4ed64d001365577zB4rgsZf', 'msg_1ec4ed54600127J6o24pft77Gb', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965952077, 1794965952078, '{"reason": "tool-calls", "snapshot": "ce64faa10d162df540d4f159fe740aafa32130f8", "type": "step-finish", "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "cost": 0}');
INSERT INTO part VALUES ('prt_1ec4ed678001i0z9l5NJxKjp5v', 'msg_1ec4ed54600127J6o24pft77Gb', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965952120, 1794965952121, '{"type": "patch", "hash": "07602d83d8b4a32deed613a7116041a5d87aa4a5", "files": ["/home/ana/demo/src/login.ts"]}');
INSERT INTO part VALUES ('prt_1ec4ed6d20017NL8b6DeELgODU', 'msg_1ec4ed67e0012Rd22FL01YfXXR', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965952210, 1794965952211, '{"snapshot": "ce64faa10d162df540d4f159fe740aafa32130f8", "type": "step-start"}');
INSERT INTO part VALUES ('prt_1ec4ed6d5001SjtKG44NsulXX2', 'msg_1ec4ed67e0012Rd22FL01YfXXR', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965952213, 1794965952459, '{"type": "tool", "tool": "bash", "callID": "call_17949659521981127130", "state": {"status": "completed", "input": {"command": "npm test", "description": "Run tests"}, "output": "\n> demo@1.0.0 test\n> node check.js\n\nok: all tests passed\n", "metadata": {"output": "\n> demo@1.0.0 test\n> node check.js\n\nok: all tests passed\n", "exit": 0, "truncated": false}, "title": "npm test", "time": {"start": 1794965952222, "end": 1794965952458}}}');
INSERT INTO part VALUES ('prt_1ec4ed7e3001nOa748Nd7whiKY', 'msg_1ec4ed67e0012Rd22FL01YfXXR', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965952484, 1794965952485, '{"reason": "tool-calls", "snapshot": "ce64faa10d162df540d4f159fe740aafa32130f8", "type": "step-finish", "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "cost": 0}');
INSERT INTO part VALUES ('prt_1ec4ed840001EUdSsKfeBrm2C5', 'msg_1ec4ed7fe001o45hFTStcqftH2', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965952576, 1794965952577, '{"snapshot": "ce64faa10d162df540d4f159fe740aafa32130f8", "type": "step-start"}');
INSERT INTO part VALUES ('prt_1ec4ed842001PuGb4B7Q1WGI1F', 'msg_1ec4ed7fe001o45hFTStcqftH2', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965952578, 1794965952581, '{"type": "text", "text": "The login tests pass now: the function returned nothing on one path (TS7030). I added an explicit `return undefined;` at the end.", "time": {"start": 1794965952578, "end": 1794965952581}}');
INSERT INTO part VALUES ('prt_1ec4ed879001ji1zWvM9jEMeTX', 'msg_1ec4ed7fe001o45hFTStcqftH2', 'ses_e13b141abffe6zhxdM09iRT2QJ', 1794965952633, 1794965952634, '{"reason": "stop", "snapshot": "ce64faa10d162df540d4f159fe740aafa32130f8", "type": "step-finish", "tokens": {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}, "cost": 0}');
