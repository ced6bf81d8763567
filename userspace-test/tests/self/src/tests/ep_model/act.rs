// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Generates the random acts of a walk.

use proptest::prelude::*;

/// Names one of the endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpName {
    Client,
    Server,
    /// The server's second endpoint, which the provider creates for a request.
    Guest,
}

/// Names one of the service points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Requests may be accepted with any endpoint.
    Public,
    /// Requests come with an endpoint.
    Provider,
    /// Takes one request, for the reserved endpoint.
    Reserved,
    /// Target of `dup_connect` with an existing connection.
    Copied,
    /// A common service point.
    Common,
}

/// Limits the pieces of a life: single acts, or sequences.
const MAX_PIECES: usize = 40;
/// Limits the reservations in a life.
pub const MAX_RESERVATIONS: usize = MAX_PIECES;

pub const POINTS: [Point; 5] =
    [Point::Public, Point::Provider, Point::Reserved, Point::Copied, Point::Common];

/// Duration in microseconds.
type Micros = u64;

#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Connects with the call for this kind of service point.
    Connect(Point),
    ConnectShortly(Point, Micros),
    /// Takes the oldest request, if any.
    Fetch(Point),
    /// Takes the oldest request, after a short wait.
    Await(Point),
    Accept(Point, EpName),
    Reject(Point),
    /// Hands the request of one service point over to another, or to the same.
    HandOff(Point, Point),
    /// Reserves an endpoint. The flag selects a qualifier above 65535.
    Reserve(EpName, bool),
    FreeRsp,
    DisconnectAbruptly(EpName),
    DisconnectGracefully(EpName),
    Reset(EpName),
    Modify(EpName),
    PostRecv(EpName),
    PostSend(EpName),
    /// Frees the endpoint without a replacement.
    Free(EpName),
    /// Replaces the endpoint by a new one, with its PZ only if the flag is set.
    Replace(EpName, bool),
    Take(EpName),
    Look(EpName),
    Sleep(Micros),
}

fn anybody() -> impl Strategy<Value = EpName> {
    prop_oneof![Just(EpName::Client), Just(EpName::Server), Just(EpName::Guest)]
}

fn answering() -> impl Strategy<Value = EpName> {
    prop_oneof![Just(EpName::Server), Just(EpName::Guest)]
}

fn point() -> impl Strategy<Value = Point> {
    prop_oneof![
        2 => Just(Point::Public),
        2 => Just(Point::Provider),
        2 => Just(Point::Reserved),
        1 => Just(Point::Copied),
        1 => Just(Point::Common),
    ]
}

/// Mostly accepts with the endpoint of the service point.
fn accept() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Accept(Point::Public, EpName::Server)),
        3 => Just(Act::Accept(Point::Provider, EpName::Guest)),
        3 => Just(Act::Accept(Point::Reserved, EpName::Server)),
        1 => (point(), answering()).prop_map(|(point, who)| Act::Accept(point, who)),
    ]
}

/// Mostly reserves the server's endpoint.
fn reserve() -> impl Strategy<Value = Act> {
    let who = prop_oneof![3 => Just(EpName::Server), 1 => Just(EpName::Guest)];
    (who, any::<bool>()).prop_map(|(who, wide)| Act::Reserve(who, wide))
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => point().prop_map(Act::Connect),
        1 => (point(), 1..4000u64).prop_map(|(point, time)| Act::ConnectShortly(point, time)),
        2 => point().prop_map(Act::Fetch),
        4 => accept(),
        1 => point().prop_map(Act::Reject),
        2 => (point(), point()).prop_map(|(from, to)| Act::HandOff(from, to)),
        2 => reserve(),
        1 => Just(Act::FreeRsp),
        2 => anybody().prop_map(Act::DisconnectAbruptly),
        2 => anybody().prop_map(Act::DisconnectGracefully),
        4 => anybody().prop_map(Act::Reset),
        3 => anybody().prop_map(Act::Modify),
        3 => anybody().prop_map(Act::PostRecv),
        3 => anybody().prop_map(Act::PostSend),
        1 => anybody().prop_map(Act::Free),
        2 => (anybody(), any::<bool>()).prop_map(|(who, bare)| Act::Replace(who, bare)),
        4 => anybody().prop_map(Act::Take),
        4 => anybody().prop_map(Act::Look),
        2 => (0..3000u64).prop_map(Act::Sleep),
    ]
}

/// Generates sequences of acts that reach a state. Some acts may be left out.
fn idiom() -> impl Strategy<Value = Vec<Act>> {
    use {Act::*, EpName::*, Point::*};
    let look = [Look(Client), Look(Server), Look(Guest)];
    // Service points whose requests may be accepted with any endpoint.
    let plain = |point| {
        vec![
            PostRecv(Server),
            Connect(point),
            Await(point),
            Accept(point, Server),
            look[1],
            Sleep(2000),
            look[0],
            look[1],
            PostSend(Client),
        ]
    };
    let provider = vec![
        Connect(Provider),
        Await(Provider),
        look[2],
        Modify(Guest),
        look[2],
        PostRecv(Guest),
        Accept(Provider, Guest),
        look[2],
        Sleep(2000),
        look[2],
        PostSend(Client),
    ];
    let reserved = |bare: bool, wide| {
        let begin = if bare { Replace(Server, true) } else { Reset(Server) };
        vec![
            begin,
            Reserve(Server, wide),
            look[1],
            Connect(Reserved),
            Await(Reserved),
            look[1],
            Modify(Server),
            look[1],
            Accept(Reserved, Server),
            Sleep(2000),
            look[1],
        ]
    };
    let to_provider = |from| {
        vec![
            Connect(from),
            Await(from),
            HandOff(from, Provider),
            Await(Provider),
            look[2],
            Modify(Guest),
            Accept(Provider, Guest),
            Sleep(2000),
            look[2],
            look[0],
        ]
    };
    let to_reserved = vec![
        Reset(Server),
        Reserve(Server, false),
        Connect(Provider),
        Await(Provider),
        look[2],
        HandOff(Provider, Reserved),
        look[2],
        look[1],
        Await(Reserved),
        Accept(Reserved, Server),
        Sleep(2000),
        look[1],
    ];
    let anew = vec![Free(Client), Connect(Public), look[0], Replace(Client, false), look[0]];
    let again = vec![
        PostSend(Client),
        DisconnectGracefully(Client),
        look[0],
        DisconnectAbruptly(Server),
        DisconnectAbruptly(Guest),
        Sleep(2000),
        Reset(Client),
        Reset(Server),
        Replace(Guest, false),
    ];
    // An omitted act counts as the simpler case when proptest shrinks a sequence.
    let some = |acts: Vec<Act>| {
        let keep = proptest::collection::vec(proptest::bool::weighted(0.93), acts.len());
        keep.prop_map(move |keep| -> Vec<Act> {
            acts.iter().zip(keep).filter(|(_, keep)| *keep).map(|(act, _)| *act).collect()
        })
    };
    prop_oneof![
        1 => some(plain(Public)),
        1 => some(plain(Copied)),
        1 => some(plain(Common)),
        1 => some(provider),
        1 => some(reserved(false, false)),
        1 => some(reserved(true, true)),
        1 => some(to_provider(Public)),
        1 => some(to_provider(Common)),
        1 => some(to_reserved),
        1 => some(anew),
        3 => some(again),
    ]
}

/// Generates one life.
pub fn life() -> impl Strategy<Value = Vec<Act>> {
    let some = prop_oneof![3 => any_act().prop_map(|act| vec![act]), 1 => idiom()];
    proptest::collection::vec(some, 1..=MAX_PIECES).prop_map(|pieces| pieces.concat())
}
