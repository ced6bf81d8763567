// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Operations that are posted while a session ends.

use super::pair::{
    pattern,
    Pair,
    CLIENT,
    SERVER, //
};
use crate::{
    bmi::engine::Error,
    sim::{
        Settings,
        SMALL, //
    }, //
};

#[test]
fn a_receive_during_the_end_takes_no_offer_of_the_session() {
    for pull in [false, true] {
        let mut pair = Pair::new(40, Settings { pull, ..SMALL });
        let offered = pair.send(SERVER, 2, &pattern(1, 5000), 1);
        pair.world.run();
        let node = &mut pair.world.nodes[CLIENT];
        node.engine.disconnect(&mut node.home, pair.peers[CLIENT]);
        let receive = pair.receive(CLIENT, 2, 5000, 1);
        pair.world.run();
        assert_eq!(pair.error_of(SERVER, offered), Some(Error::Reset));
        assert!(
            !pair.is_complete(CLIENT, receive),
            "it waits in the next session"
        );
        pair.send(SERVER, 2, &pattern(2, 5000), 1);
        pair.world.run();
        let (result, bytes) = pair.result_of(CLIENT, receive);
        assert_eq!(result.error, None);
        assert!(bytes == pattern(2, 5000), "wrong bytes");
        assert_eq!(pair.world.violations, 0);
    }
}
