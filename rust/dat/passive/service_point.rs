// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Consumer's interface to a service point.

use super::Point;
use crate::dat::{
    base::Object,
    prelude::*, //
};

/// Consumer's interface to a service point.
pub(in crate::dat) trait ServicePoint: Object {
    /// Creates the interface to this service point.
    fn new(point: Arc<Point>) -> DatResult<Arc<Self>>;

    /// Returns the service point.
    fn point(&self) -> &Point;
}

/// Defines a type that implements [`ServicePoint`]. Its name is also its census kind.
macro_rules! service_point {
    ($(#[$documentation:meta])* $name:ident: $invalid:ident) => {
        $(#[$documentation])*
        pub(crate) struct $name {
            point: kernel::sync::Arc<$crate::dat::passive::Point>,
            _counted: $crate::sys::census::Counted,
        }

        impl $crate::dat::passive::ServicePoint for $name {
            fn new(
                point: kernel::sync::Arc<$crate::dat::passive::Point>,
            ) -> $crate::model::code::DatResult<kernel::sync::Arc<Self>> {
                use $crate::sys::census::{
                    Counted,
                    Kind, //
                };
                let _counted = Counted::new(Kind::$name);
                let this = Self { point, _counted };
                Ok(kernel::sync::Arc::new(this, kernel::alloc::flags::GFP_KERNEL_ACCOUNT)?)
            }

            fn point(&self) -> &$crate::dat::passive::Point {
                &self.point
            }
        }

        impl $crate::dat::base::Object for $name {
            const KIND: $crate::model::handle::HandleKind =
                $crate::model::handle::HandleKind::$name;
            const INVALID: $crate::model::code::Subtype = $crate::model::code::Subtype::$invalid;

            /// Closes the service point. Connections stay. Requests that have arrived can still be
            /// answered.
            fn shutdown(
                self: &kernel::sync::Arc<Self>,
                _freeing: crate::dat::base::Freeing<'_, Self>,
            ) {
                self.point.shutdown();
            }
        }
    };
}
pub(super) use service_point;
