package dev.penstock.actors.dataplane.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.Outbound;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class OutboundChannelTest {
    private static final ChannelKey KEY = new ChannelKey(FrameKind.ACTIVATION, 0, 1);
    private static final FrameKey TENSOR = new FrameKey(KEY, 1, 0, 0);

    private static final MemorySegment BYTES = MemorySegment.ofArray(new byte[100]);

    @SuppressWarnings("NullAway") // no test here sends anything
    private final OutboundChannel channel =
            new OutboundChannel(new Outbound(KEY, 1, 1), null, false);

    @Test
    void aCreditMayComeBackBeforeTheSendersThreadGoesOn() {
        channel.begin(TENSOR, BYTES);

        // the receiver took the tensor as soon as it was in the log
        assertThat(channel.isPlausible(1, 1)).isTrue();
        assertThat(channel.credited(1, 1)).isTrue();
        assertThat(channel.advance(100, 100)).isTrue();
        assertThat(channel.mayOffer(TENSOR, 100)).isTrue();
    }

    @Test
    void aTensorInChunksUsesOneCredit() {
        channel.begin(TENSOR, BYTES);
        assertThat(channel.advance(100, 60)).isFalse();
        channel.begin(TENSOR, BYTES);
        assertThat(channel.advance(100, 40)).isTrue();

        assertThat(channel.credits()).isZero();
        assertThat(channel.mayOffer(TENSOR, 100)).isFalse();
        assertThat(channel.isPlausible(2, 2)).isFalse();
    }
}
