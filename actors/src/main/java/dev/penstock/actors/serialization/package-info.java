/**
 * Messages on their way between processes: what may travel and how it is written. The only place
 * that sees Kryo. The protocols are listed in the configuration ({@code penstock.wire.protocols});
 * their records say themselves what lies in them. Start with {@link
 * dev.penstock.actors.serialization.KryoRegistry}.
 */
@NullMarked
package dev.penstock.actors.serialization;

import org.jspecify.annotations.NullMarked;
