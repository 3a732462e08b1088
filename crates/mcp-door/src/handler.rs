//! One client, as the protocol's library calls it. Clients of the older protocol begin with
//! `initialize` and have a connection or a session; those of the newer one name all in each request.

use std::sync::Arc;

use attache_session::SessionId;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ResourceTemplate, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use crate::call;
use crate::door::{Door, Roots};
use crate::follow::{Sink, Teller, Wanted, follow};
use crate::resources::{self, address, failed, session_of, unknown};
use crate::seat::Seat;

/// One client of the door.
pub struct McpClient {
    door: Door,
    seat: Arc<Seat>,
    /// The seat of requests that belong to no connection; none where there always is one.
    shared: Option<Arc<Seat>>,
    wanted: Wanted,
    teller: Teller,
}

impl McpClient {
    /// A client that has a connection of its own. `root` is one that it was opened with.
    #[must_use]
    pub fn new(door: &Door, roots: Arc<dyn Roots>, root: Option<SessionId>) -> Self {
        Self {
            door: door.clone(),
            seat: Arc::new(Seat::new(roots, root)),
            shared: None,
            wanted: Wanted::default(),
            teller: Teller::default(),
        }
    }

    /// A client of a door where requests may belong to no connection.
    pub(crate) fn over_http(door: &Door, roots: Arc<dyn Roots>, shared: &Arc<Seat>) -> Self {
        Self {
            shared: Some(Arc::clone(shared)),
            ..Self::new(door, roots, None)
        }
    }

    fn seat(&self, context: &RequestContext<RoleServer>) -> &Arc<Seat> {
        match &self.shared {
            Some(shared) if is_alone(context) => shared,
            _ => &self.seat,
        }
    }

    /// The session of an address that this client may see, with the root of its tree.
    async fn visible(&self, seat: &Seat, uri: &str) -> Result<(SessionId, SessionId), ErrorData> {
        let session = session_of(uri).ok_or_else(|| unknown(uri))?;
        let engine = &self.door.0.engine;
        let row = engine.row(session).map_err(|error| match error.code {
            attache_session::ErrorCode::UnknownSession => unknown(uri),
            _ => failed(&error),
        })?;
        if seat.sees(engine, row.root).await {
            Ok((session, row.root))
        } else {
            Err(unknown(uri))
        }
    }
}

/// Whether a request stands for itself and belongs to no connection.
fn is_alone(context: &RequestContext<RoleServer>) -> bool {
    let version = context.meta.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

impl ServerHandler for McpClient {
    fn get_info(&self) -> ServerConfig {
        self.door.0.info.clone()
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tools = &self.door.0.tools;
        tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.door.0.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        call::call(&self.door, self.seat(&context), request, &context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let engine = &self.door.0.engine;
        let seat = self.seat(&context);
        if !is_alone(&context) {
            self.teller
                .start(engine, &self.wanted, &seat.tree, &context.peer);
        }
        // A client that only looks leaves no root behind.
        let root = seat.own_root(engine).await;
        let Some(root) = root.map_err(|error| failed(&error))? else {
            return Ok(ListResourcesResult::with_all_items(Vec::new()));
        };
        let cursor = request.and_then(|request| request.cursor);
        resources::list(engine, root, cursor.as_deref())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("attache://session/{session_id}", "session")
            .with_description("A session of yours by its id");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let seat = self.seat(&context);
        let (session, root) = self.visible(seat, &request.uri).await?;
        let read = resources::read(&self.door.0.engine, root, session).await;
        read.map(Into::into).map_err(|error| failed(&error))
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (session, _) = self.visible(self.seat(&context), &request.uri).await?;
        if !self.wanted.add(session) {
            return Err(ErrorData::invalid_request(
                "this client follows too many sessions",
                None,
            ));
        }
        let tree = &self.seat.tree;
        self.teller
            .start(&self.door.0.engine, &self.wanted, tree, &context.peer);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let Some(session) = session_of(&request.uri) {
            self.wanted.remove(session);
        }
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.resources_list_changed = requested.resources_list_changed;
        accepted.resource_subscriptions = requested.resource_subscriptions.clone();
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let engine = &self.door.0.engine;
        // Before the look at what there is: a change in between is not missed.
        let feed = engine.tree_feed();
        let request = context.request_context();
        let seat = self.seat(request);
        let wanted = Wanted::default();
        let accepted = context.accepted();
        for uri in accepted.resource_subscriptions.iter().flatten() {
            // What may not be seen is like what does not exist: nothing is ever told of it.
            if let Ok((session, _)) = self.visible(seat, uri).await
                && address(session) == *uri
            {
                wanted.add(session);
            }
        }
        let lists = accepted.resources_list_changed == Some(true);
        let tree = lists.then(|| seat.tree.clone());
        let sink = Sink::Request(context.sink().clone());
        tokio::select! {
            () = follow(engine.clone(), feed, wanted, tree, sink) => {}
            () = context.cancelled() => {}
        }
        Ok(())
    }
}
