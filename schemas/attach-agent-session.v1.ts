// The frames of `attach-agent-session`, version 1. Made from the schema beside this file; do not edit it.
// A member that may be left out by who sends it has a `?`.

/** A frame of a viewer. */
export type FromViewer =
  | { "features": Array<string>; "program": string; "type": "hello"; "version": number }
  | { "agent"?: string | null; "door": string; "environment": Record<string, string>; "model"?: string | null; "program": string; "root-session-id"?: string | null; "type": "open-door"; "version": number; "working-directory": string }
  | { "body": Command; "command-id": string; "type": "command" };

/** A frame of a host. */
export type FromHost =
  | { "features": Array<string>; "program": string; "type": "hello"; "version": number }
  | { "body": Answer; "command-id": string; "type": "answer" }
  | { "command-id"?: string | null; "error": WireError; "type": "operation-error" }
  | { "detail"?: SessionDetail | null; "epoch"?: string | null; "history": Array<HistoryItem>; "more-history": boolean; "queues": Array<QueueView>; "running"?: RunningItem | null; "sequence": number; "sessions": Array<SessionView>; "stream": Stream; "type": "snapshot" }
  | { "epoch"?: string | null; "live": boolean; "patch": Patch; "sequence": number; "session-id": string; "stream": Stream; "type": "delta" }
  | { "epoch"?: string | null; "reason": string; "sequence": number; "session-id": string; "type": "session-terminal" }
  | { "reason": string; "type": "going-away" };

/** Who an agent is. The first five texts are never blank. */
export type AgentInformation = { "accepts-user-input": boolean; "agent-definition"?: Record<string, unknown> | null; "agent-id": string; "agent-session-id": string; "current-model-id"?: string | null; "description": string; "display-name": string; "name": string };

/** An agent definition as a list shows it. */
export type AgentView = { "description": string; "error"?: string | null; "model"?: string | null; "name": string; "parameters": Array<string>; "source": string; "tools": Array<string> };

/** What came of a command. */
export type Answer =
  | { "changed": boolean; "kind": "done" }
  | { "attachment": string; "kind": "attached"; "replays": boolean }
  | { "kind": "runtime"; "runtime": Runtime }
  | { "kind": "slash"; "known": boolean; "text": string }
  | { "item-id": string; "kind": "accepted"; "status": Status }
  | { "kind": "queue-made"; "queue-id": string }
  | { "kind": "session"; "session": SessionView }
  | { "kind": "sessions"; "more": boolean; "sessions": Array<SessionView> }
  | { "kind": "ledger"; "ledger"?: LedgerView | null }
  | { "kind": "history"; "page": HistoryPage }
  | { "kind": "text"; "more": boolean; "text": string }
  | { "agents": Array<AgentView>; "kind": "agents" }
  | { "kind": "budget"; "limits": Array<LimitView>; "paused": boolean }
  | { "kind": "receipts"; "receipts": Array<ReceiptView> }
  | { "host": HostView; "kind": "host" }
  | { "kind": "token-made"; "secret": string; "token": TokenView }
  | { "kind": "tokens"; "tokens": Array<TokenView> };

/** What a call came to. */
export type CallOutcome =
  | "ok"
  | "failed"
  | "cut"
  | "running";

/** A child. */
export type ChildView = { "call-id"?: string | null; "held": boolean; "session-id": string };

/** A request. */
export type Command =
  | { "agent"?: string | null; "budget"?: string | null; "detached": boolean; "environment": Record<string, string>; "first-message"?: string | null; "kind": "create-session"; "model"?: string | null; "name"?: string | null; "parameters": Record<string, string>; "session-id": string; "working-directory": string }
  | { "environment": Record<string, string>; "kind": "enqueue"; "queue": QueueRef; "session-id": string; "start": boolean; "text": string }
  | { "expected-revision": number; "item-id": string; "kind": "edit-item"; "session-id": string; "text": string }
  | { "expected-revision": number; "item-id": string; "kind": "remove-item"; "session-id": string }
  | { "before-item-id"?: string | null; "expected-revision": number; "item-id": string; "kind": "move-item"; "queue-id": string; "session-id": string }
  | { "immediacy": Immediacy; "kind": "create-queue"; "name"?: string | null; "session-id": string }
  | { "expected-revision": number; "immediacy"?: Immediacy | null; "kind": "configure-queue"; "queue-id": string; "session-id": string }
  | { "expected-revision": number; "kind": "delete-queue"; "queue-id": string; "session-id": string }
  | { "environment": Record<string, string>; "kind": "start-session"; "session-id": string }
  | { "kind": "interrupt"; "session-id": string; "tree": boolean }
  | { "environment": Record<string, string>; "kind": "compact"; "session-id": string }
  | { "kind": "get-budget"; "session-id": string }
  | { "kind": "get-receipts"; "session-id": string }
  | { "budget": string; "kind": "set-budget"; "paused"?: boolean | null; "session-id": string }
  | { "kind": "terminate"; "session-id": string }
  | { "kind": "delete"; "session-id": string }
  | { "kind": "resolve"; "text": string }
  | { "after-session-id"?: string | null; "kind": "list-sessions"; "root-session-id"?: string | null }
  | { "kind": "get-session"; "session-id": string }
  | { "kind": "get-ledger"; "session-id": string }
  | { "kind": "page-history"; "query": HistoryQuery; "session-id": string }
  | { "kind": "read-text"; "offset": number; "position": number; "session-id": string }
  | { "kind": "wait"; "reach": Reach; "session-id": string; "timeout-seconds"?: number | null }
  | { "kind": "attach"; "read-only"?: boolean; "resume"?: Resume | null; "session-id": string }
  | { "environment": Record<string, string>; "kind": "start-or-attach"; "resume"?: Resume | null; "session-id": string }
  | { "kind": "detach"; "session-id": string }
  | { "kind": "query-status"; "session-id": string }
  | { "kind": "slash-command"; "session-id": string; "text": string }
  | { "answer": ModalAnswer; "kind": "respond-modal"; "modal-id": string; "session-id": string }
  | { "continue-in-background": boolean; "kind": "set-retention"; "session-id": string }
  | { "enabled": boolean; "kind": "set-tool-enabled"; "session-id": string; "tool": string }
  | { "kind": "watch-tree"; "root-session-id"?: string | null }
  | { "kind": "list-agents"; "working-directory": string }
  | { "kind": "host-status" }
  | { "kind": "create-token"; "name"?: string | null; "scope": TokenScope; "session-id"?: string | null }
  | { "kind": "list-tokens" }
  | { "kind": "revoke-token"; "token": string };

/** What an item is. */
export type EventKind =
  | "user"
  | "assistant"
  | "tool-call"
  | "tool-result"
  | "diagnostic";

/** A stable item of a history. */
export type HistoryItem = { "at": string; "call-id"?: string | null; "cut": boolean; "incomplete": boolean; "is-error": boolean; "kind": EventKind; "name"?: string | null; "origin"?: InputOrigin | null; "pictures"?: Array<PictureView>; "position": number; "spawned-session-id"?: string | null; "text": string; "turn"?: number | null };

/** A page of a history, oldest first. */
export type HistoryPage = { "items": Array<HistoryItem>; "next-cursor"?: string | null; "total-matching": number };

/** Which part of a history is asked for. */
export type HistoryQuery = { "after"?: string | null; "kinds": Array<EventKind>; "limit": number; "newest": boolean; "search"?: string | null };

/** A host as it shows itself. */
export type HostView = { "busy-sessions": number; "live-sessions": number; "process-id": number; "program": string; "state-folder": string };

/** When a queue's input may be taken. */
export type Immediacy =
  | "immediate"
  | "queue"
  | "held";

/** Who wrote an item of input. */
export type InputOrigin =
  | { "kind": "viewer" }
  | { "kind": "session"; "session-id": string }
  | { "kind": "notice"; "notice-id": string; "result-is-earlier": boolean; "result-preview"?: string | null; "session-id": string };

/** A call of a run. */
export type LedgerCallView = { "arguments": string; "arguments-digest": string; "changes-state": boolean; "detail"?: string | null; "duration-micros"?: number | null; "name": string; "nested": Array<NestedCallView>; "nested-total": number; "outcome": CallOutcome; "result-digest"?: string | null };

/** The calls of a run. */
export type LedgerView = { "calls": Array<LedgerCallView>; "total": number };

/** A limit of a session's tree. Money is in dollars, time in seconds. */
export type LimitView = { "limit": string; "most": number; "used"?: number | null };

/** What a person answers. */
export type ModalAnswer = { "accepted": boolean; "content"?: unknown; "text"?: string | null };

/** How a question came to its end. */
export type ModalEnd =
  | { "answer": ModalAnswer; "by": string; "kind": "answered" }
  | { "kind": "expired" }
  | { "kind": "withdrawn" };

/** What is asked for. */
export type ModalKind =
  | "permission"
  | "question"
  | "form"
  | "plan"
  | "sign-in";

/** An open question. Of several the first one was asked first; each waits until it is answered or its call is over. */
export type ModalView = { "arguments-digest": string; "body"?: string | null; "call-id": string; "choices": Array<string>; "free": boolean; "kind": ModalKind; "modal-id": string; "path": Array<PathView>; "raised-at": string; "schema"?: unknown; "seconds": number; "session-id": string; "text": string; "tool": string };

/** A call that another call made by itself. */
export type NestedCallView = { "arguments": string; "changes-state": boolean; "name": string; "outcome": CallOutcome };

/** Whose a session is. */
export type OwnershipView = { "generation": number; "owning-profile-id": string };

/** What changed, by topic: the new value of what it names. */
export type Patch =
  | { "item": HistoryItem; "topic": "item-put" }
  | { "offset": number; "step": number; "text": string; "topic": "item-text"; "turn": number }
  | { "queue": QueueView; "topic": "queue-put" }
  | { "queue-id": string; "topic": "queue-gone" }
  | { "information": AgentInformation; "topic": "information-put" }
  | { "topic": "usage-put"; "usage": UsageTotals }
  | { "tools": Array<ToolView>; "topic": "tools-put" }
  | { "child": ChildView; "topic": "child-put" }
  | { "modal": ModalView; "topic": "modal-put" }
  | { "asker-session-id": string; "end": ModalEnd; "modal-id": string; "topic": "modal-gone" }
  | { "topic": "viewers-put"; "viewers": Array<ViewerView> }
  | { "retention": RetentionView; "topic": "retention-put" }
  | { "ownership": OwnershipView; "topic": "ownership-put" }
  | { "session": SessionView; "topic": "session-put" }
  | { "session": SessionView; "topic": "tree-row" }
  | { "topic": "tree-gone" };

/** A session on the way to who asks. */
export type PathView = { "name": string; "session-id": string };

/** A picture, told of. */
export type PictureView = { "bytes": number; "media-type": string };

/** An item that waits. */
export type QueueItemView = { "item-id": string; "origin": InputOrigin; "revision": number; "text": string };

/** A queue of a session. */
export type QueueRef =
  | { "kind": "immediate" }
  | { "kind": "default" }
  | { "held": boolean; "kind": "named"; "name": string };

/** A queue with what waits in it. */
export type QueueView = { "immediacy": Immediacy; "items": Array<QueueItemView>; "name": string; "queue-id": string; "revision": number; "waiting": number };

/** How far a wait goes. */
export type Reach =
  | "itself"
  | "tree";

/** Where an item of input has got to. */
export type ReceiptView = { "item-id": string; "origin": InputOrigin; "position"?: number | null; "preview": string; "reason"?: string | null; "state": string; "turn"?: number | null };

/** An attachment to which a viewer comes back. When it was let go meanwhile, or its epoch is over, the command is refused as `unknown-session`, and the viewer attaches anew. */
export type Resume = { "attachment": string; "place"?: StreamPlace | null };

/** What happens when nobody looks on any more. */
export type RetentionView = { "continue-in-background": boolean };

/** The item that still streams. */
export type RunningItem = { "calls": Array<string>; "step": number; "text": string; "turn": number };

/** Whether a session runs at a host. */
export type Runtime =
  | "running"
  | "not-running"
  | "unavailable";

/** Everything about one attached session that is neither row, history nor queue. */
export type SessionDetail = { "children": Array<ChildView>; "information": AgentInformation; "modals": Array<ModalView>; "ownership": OwnershipView; "retention": RetentionView; "tools": Array<ToolView>; "usage": UsageTotals; "viewers": Array<ViewerView> };

/** A session's row. Times are RFC 3339, UTC, with six fraction digits. */
export type SessionView = { "action"?: string | null; "agent": string; "asks": number; "context-tokens"?: number | null; "continue-in-background": boolean; "cost-at-least": boolean; "cost-usd"?: number | null; "created-at": string; "end-reason"?: string | null; "generation": number; "last-activity-at": string; "model": string; "name": string; "note"?: string | null; "outcome"?: string | null; "parent-session-ids": Array<string>; "paused": boolean; "queued": number; "result-is-earlier": boolean; "result-preview"?: string | null; "root-session-id": string; "session-id": string; "side-effects"?: string | null; "status": Status; "unread": number; "usage": UsageView; "waiting-for": Array<string>; "working-directory": string };

/** What a session is doing. */
export type Status =
  | "running"
  | "idle"
  | "stopped"
  | "error";

/** Which stream a snapshot or a delta belongs to. */
export type Stream =
  | "session"
  | "tree";

/** A place in a session's stream. */
export type StreamPlace = { "epoch"?: string | null; "sequence": number };

/** What a token lets its bearer do. Each has what those before it have. */
export type TokenScope =
  | "read"
  | "write"
  | "admin";

/** A token. */
export type TokenView = { "created-at": string; "name": string; "scope": TokenScope; "session-id"?: string | null; "token-id": string };

/** A tool with its switch. */
export type ToolView = { "changes-state": boolean; "description": string; "enabled": boolean; "name": string };

/** Totals of a session; null is not reported. None is below zero. */
export type UsageTotals = { "total-cache-read-token-count"?: number | null; "total-cache-write-token-count"?: number | null; "total-input-token-count"?: number | null; "total-output-token-count"?: number | null; "total-reasoning-token-count"?: number | null; "total-session-cost-usd"?: number | null };

/** Token counts; null is "not reported". */
export type UsageView = { "cache-read-tokens"?: number | null; "cache-write-tokens"?: number | null; "input-tokens"?: number | null; "output-tokens"?: number | null; "reasoning-tokens"?: number | null };

/** A viewer of the session, the asking one included. */
export type ViewerView = { "in-grace": boolean; "program": string; "read-only": boolean; "viewer": number };

/** An error. */
export type WireError = { "category": string; "code": string; "correlation-id": string; "current-revision"?: number | null; "hint"?: string | null; "message": string; "retryable": boolean };
