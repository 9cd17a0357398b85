package dev.penstock.actors.dataplane.direct;

import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Offers tensors of a device to a link. Where the link reads other memory than the device's, each
 * goes there first through one of some blocks, and stays in it until it is verified; elsewhere
 * there are no blocks, and the link reads the tensor itself. The rank's thread only.
 */
public final class SendBlocks {
    private final Outbound channel;
    private final Kernels kernels;
    private final List<DeviceBuffer> blocks;
    private long sent;

    /** Whether the tensor that is offered is in its block, or on its way to it. */
    private boolean begun;

    /**
     * Allocates the blocks, if any are needed.
     *
     * @param name for leak reports, such as {@code block for rank 3}
     * @param bytes of the longest tensor
     */
    public SendBlocks(
            Outbound channel, DeviceScope scope, String name, long bytes, Kernels kernels) {
        this.channel = channel;
        this.kernels = kernels;
        this.blocks =
                IntStream.range(0, count(channel.credits(), scope.isStaged()))
                        .mapToObj(i -> scope.allocateStaged(name + " " + i, bytes))
                        .toList();
    }

    /**
     * How many blocks there are: for tensors under way and the one that is offered.
     *
     * @param staged whether links read other memory than the device's
     */
    public static int count(int credits, boolean staged) {
        return staged ? credits + 1 : 0;
    }

    /** See {@link Endpoint#offer}; the same dense tensor until it is sent. */
    public OfferResult offer(Endpoint endpoint, FrameKey key, Tensor tensor) {
        if (blocks.isEmpty()) {
            return counted(endpoint.offer(key, tensor.segment()));
        }
        DeviceBuffer block = blocks.get((int) (sent % blocks.size()));
        if (!begun) {
            if (endpoint.verified(channel.channel()) + blocks.size() <= sent) {
                return OfferResult.BACK_PRESSURED; // what is in it may have to go once more
            }
            Tensor row = row(tensor);
            kernels.copy(row, Tensor.of(block, row.type(), 1, row.columns()));
            block.beginToHost(tensor.bytes());
            begun = true;
        }
        return block.isCopied()
                ? counted(endpoint.offer(key, block.staging().asSlice(0, tensor.bytes())))
                : OfferResult.BACK_PRESSURED;
    }

    private OfferResult counted(OfferResult answer) {
        if (answer instanceof OfferResult.Sent) {
            sent++;
            begun = false;
        }
        return answer;
    }

    private static Tensor row(Tensor dense) {
        int columns = Math.toIntExact(dense.elements());
        return new Tensor(dense.buffer(), dense.offsetBytes(), dense.type(), 1, columns, columns);
    }

    /** Tensors sent since the link was opened. */
    public long sent() {
        return sent;
    }
}
