package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.direct.ReceiveSlots;
import dev.penstock.actors.dataplane.direct.SendBlocks;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.Sharers;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.util.List;
import java.util.stream.Stream;

/**
 * Replaces a gradient that two stages share by the sum of both parts, on both. Its blocks travel in
 * both directions, so no complete copy is ever needed; the sum of two numbers is the same in either
 * order, so both sides get the same bits.
 *
 * <p>A block may be sent again until every receiver has verified it, so the other part stays in its
 * slot and is added only then. Receivers take a block without waiting for that, so all sides
 * advance.
 */
final class SharedGradientExchange implements GradientExchange {
    private static final int BLOCK_ELEMENTS = 1 << 20;
    private static final int CREDITS = 2;
    private static final int NONE = -1;

    private final SharedGradient shared;
    private final Kernels kernels;
    private final Inbound inbound;
    private final List<Sending> sendings;
    private final ReceiveSlots slots;
    private final int blocks;
    private int received;
    private long sentBytes;
    private int heldSlot = NONE;

    /** This rank's part on its way to one receiver. */
    private static final class Sending {
        final Outbound outbound;
        final SendBlocks blocks;
        int sent;

        /** The number of blocks sent in earlier passes. */
        long sentBefore;

        Sending(Outbound outbound, DeviceScope scope, long bytes, Kernels kernels) {
            this.outbound = outbound;
            String name = "shared gradient for rank " + outbound.toRank();
            this.blocks = new SendBlocks(outbound, scope, name, bytes, kernels);
        }

        boolean hasVerified(Endpoint endpoint, int block) {
            return endpoint.verified(outbound.channel()) > sentBefore + block;
        }
    }

    SharedGradientExchange(
            int rank,
            RunPlan plan,
            int stage,
            SharedGradient shared,
            DeviceScope scope,
            Kernels kernels) {
        this.shared = shared;
        this.kernels = kernels;
        int peer = peerOf(stage, shared);
        Sharers sharers = Sharers.of(plan, rank, stage, peer);
        long elements = shared.gradient().elements();
        this.blocks = Math.toIntExact((elements + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS);
        long bytes = Math.min(elements, BLOCK_ELEMENTS) * DType.F32.bytes();
        this.slots =
                new ReceiveSlots(
                        scope,
                        i -> "shared gradient of " + shared.name() + " " + i,
                        CREDITS + 1,
                        bytes);
        this.inbound =
                new Inbound(
                        channel(plan, peer, sharers.giver(), stage, rank),
                        sharers.giver(),
                        CREDITS,
                        slots.segments());
        this.sendings =
                sharers.receivers().stream()
                        .map(to -> new Outbound(channel(plan, stage, rank, peer, to), to, CREDITS))
                        .map(outbound -> new Sending(outbound, scope, bytes, kernels))
                        .toList();
    }

    private static ChannelKey channel(
            RunPlan plan, int fromStage, int fromRank, int stage, int toRank) {
        return plan.training()
                .placement()
                .wiring()
                .map(
                        wiring ->
                                new ChannelKey(
                                        FrameKind.SHARED_GRADIENT,
                                        fromStage,
                                        stage,
                                        wiring.peerOfRank(fromRank),
                                        wiring.peerOfRank(toRank)))
                .orElseGet(() -> new ChannelKey(FrameKind.SHARED_GRADIENT, fromStage, stage));
    }

    /** Returns the other stage that shares a gradient. */
    static int peerOf(int stage, SharedGradient shared) {
        return peerOf(stage, shared.stages());
    }

    private static int peerOf(int stage, List<Integer> stages) {
        if (stages.size() != 2 || !stages.contains(stage)) {
            throw new IllegalArgumentException(
                    "a gradient of stage %d: expected two sharing stages, one of them this, got %s"
                            .formatted(stage, stages));
        }
        return stages.get(stages.get(0) == stage ? 1 : 0);
    }

    /**
     * Returns the bytes of all slots and blocks of a rank for what its stages share with those of
     * other ranks.
     *
     * @param elements of a shared gradient
     * @param staged whether links read other memory than the device's
     */
    static long slotBytes(int rank, RunPlan plan, long elements, boolean staged) {
        List<Integer> own = plan.stagesOf(rank);
        long blocks = 0;
        for (List<Integer> group : plan.training().sharedGroups()) {
            for (int stage : group) {
                if (own.contains(stage) && !own.contains(peerOf(stage, group))) {
                    int receivers =
                            Sharers.of(plan, rank, stage, peerOf(stage, group)).receivers().size();
                    blocks += CREDITS + 1 + (long) receivers * SendBlocks.count(CREDITS, staged);
                }
            }
        }
        return blocks * Math.min(elements, BLOCK_ELEMENTS) * DType.F32.bytes();
    }

    Inbound inbound() {
        return inbound;
    }

    Stream<Outbound> outbound() {
        return sendings.stream().map(sending -> sending.outbound);
    }

    @Override
    public void begin() {
        for (Sending sending : sendings) {
            sending.sentBefore += sending.sent;
            sending.sent = 0;
        }
        sentBytes = 0;
        received = 0;
    }

    @Override
    public long sentBytes() {
        return sentBytes;
    }

    /** Moves at most one block in each direction. */
    @Override
    public Progress advance(Endpoint endpoint, long pass) {
        boolean linkBusy = false;
        boolean moved = false;
        int sentToAll = blocks;
        for (Sending sending : sendings) {
            if (sending.sent < blocks) {
                var key = new FrameKey(sending.outbound.channel(), pass, sending.sent, 0);
                Tensor block = block(sending.sent);
                switch (sending.blocks.offer(endpoint, key, block)) {
                    case OfferResult.Sent _ -> {
                        sending.sent++;
                        sentBytes += block.bytes();
                        moved = true;
                    }
                    case OfferResult.NoCredit _ -> {}
                    case OfferResult.BackPressured _ -> linkBusy = true;
                    case OfferResult.Failed(String reason) ->
                            throw BoundaryLinks.linkFailed(reason);
                }
            }
            sentToAll = Math.min(sentToAll, sending.sent);
        }
        if (received < sentToAll && takeOne(endpoint, pass)) {
            received++;
            moved = true;
        }
        if (received == blocks) {
            return Progress.DONE;
        }
        if (moved) {
            return Progress.AGAIN;
        }
        return linkBusy ? Progress.WAITS_FOR_LINK : Progress.WAITS_FOR_FRAME;
    }

    private boolean takeOne(Endpoint endpoint, long pass) {
        if (heldSlot == NONE) {
            heldSlot = endpoint.take(new FrameKey(inbound.channel(), pass, received, 0));
        }
        int block = received;
        boolean mayAdd = sendings.stream().allMatch(each -> each.hasVerified(endpoint, block));
        if (heldSlot == NONE || !mayAdd) {
            return false;
        }
        Tensor mine = block(received);
        kernels.add(slots.bring(heldSlot, DType.F32, mine.columns()), mine);
        kernels.finish();
        endpoint.release(inbound.channel(), heldSlot);
        heldSlot = NONE;
        return true;
    }

    private Tensor block(int index) {
        Tensor whole = shared.gradient();
        long first = (long) index * BLOCK_ELEMENTS;
        int count = (int) Math.min(BLOCK_ELEMENTS, whole.elements() - first);
        return new Tensor(
                whole.buffer(),
                whole.offsetBytes() + first * DType.F32.bytes(),
                DType.F32,
                1,
                count,
                count);
    }
}
