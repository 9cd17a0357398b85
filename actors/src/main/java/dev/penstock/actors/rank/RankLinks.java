package dev.penstock.actors.rank;

import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.Strands;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Opening;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.direct.DirectTransfers;
import dev.penstock.actors.fault.RankFaults;
import dev.penstock.actors.mirror.MirrorExchange;
import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * What a rank has for one epoch: an endpoint with its slots, and the interpreters that use them.
 * Closed and built anew by a recovery, while device and stages stay. The rank's thread only.
 */
final class RankLinks implements AutoCloseable {
    private final int rank;
    private final RunPlan plan;
    private final Device device;
    private final Map<Integer, StageProgram> stages;
    private final RankGroups groups;
    private final DeviceScope blocks;
    private final DeviceScope boundary;
    private final DeviceScope mirrorBlocks;
    private final Endpoint endpoint;
    private final DirectTransfers direct;
    private StepTraffic sentBefore = StepTraffic.NOTHING;

    /** Bytes to replicas that earlier passes were told of. */
    private long toldOfReplicas;

    private final Map<StepKind, OpInterpreter> interpreters = new EnumMap<>(StepKind.class);

    /**
     * @param coding what this rank's ends of links keep from step to step
     * @param waits how one of the rank's groups waits
     * @param mirrors makes the exchange of mirrored gradients, with its blocks in the given scope
     */
    RankLinks(
            int rank,
            int epoch,
            RankLocations locations,
            RankResources resources,
            Device device,
            Map<Integer, StageProgram> stages,
            CodingState coding,
            Function<DeviceScope, MirrorExchange> mirrors,
            RankFaults faults,
            FrameListener listener,
            Supplier<RankWaits> waits) {
        this.rank = rank;
        this.plan = resources.plan();
        this.device = device;
        this.stages = stages;
        DataPlane dataPlane = resources.dataPlane();
        List<Integer> homes =
                dataPlane.carriesAll()
                        ? IntStream.range(0, plan.ranks()).boxed().toList()
                        : locations.homes();
        this.direct = new DirectTransfers(resources.transfers(), rank, epoch, homes, listener);
        this.blocks = device.memory().child(MemoryUse.COLLECTIVES, Long.MAX_VALUE);
        this.boundary = device.memory().child(MemoryUse.BUFFERS, Long.MAX_VALUE);
        this.mirrorBlocks = device.memory().child(MemoryUse.MIRRORS, Long.MAX_VALUE);
        RankGroups joined = null;
        Endpoint opened = null;
        try {
            boolean beside =
                    stages.values().stream().anyMatch(stage -> !stage.equals(stage.beside()));
            joined = new RankGroups(rank, epoch, homes, resources, device, blocks, beside, waits);
            this.groups = joined;
            var buffers =
                    new BoundaryBuffers(
                            rank,
                            plan,
                            stages,
                            boundary,
                            device.kernels(),
                            coding,
                            dataPlane.keepsSentTensors());
            List<Inbound> inbound = new ArrayList<>(buffers.inbound());
            List<Outbound> outbound = new ArrayList<>(buffers.outbound());
            Map<Integer, List<GradientExchange>> exchanges = exchanges(inbound, outbound);
            MirrorExchange exchange = mirrors.apply(mirrorBlocks);
            inbound.addAll(exchange.inbound());
            outbound.addAll(exchange.outbound());
            groups.inbound().forEach(inbound::add);
            groups.outbound().forEach(outbound::add);
            opened =
                    dataPlane.open(
                            new Opening(rank, epoch, inbound, outbound, locations.addresses()),
                            listener);
            this.endpoint = opened;
            groups.bind(endpoint);
            buffers.open(direct);
            for (StepKind kind : StepKind.values()) {
                interpreters.put(
                        kind,
                        new OpInterpreter(
                                rank, plan, kind, stages, exchanges, buffers, endpoint, direct,
                                faults));
            }
            Strands strands = groups.strands();
            if (strands != null) {
                interpreters.values().forEach(each -> each.runPairsOn(strands));
            }
            stages.values().forEach(stage -> stage.connect(groups.ofStages()));
        } catch (RuntimeException | Error e) {
            close(joined, opened);
            throw e;
        }
    }

    OpInterpreter interpreter(StepKind wanted) {
        OpInterpreter found = interpreters.get(wanted);
        if (found == null) {
            throw new IllegalStateException("no program for " + wanted);
        }
        return found;
    }

    Endpoint endpoint() {
        return endpoint;
    }

    /** By stage; adds the channels of those that cross ranks. */
    private Map<Integer, List<GradientExchange>> exchanges(
            List<Inbound> inbound, List<Outbound> outbound) {
        Map<Integer, List<GradientExchange>> exchanges = new TreeMap<>();
        for (StageProgram stage : stages.values()) {
            for (SharedGradient shared : stage.sharedGradients()) {
                int peer = SharedGradientExchange.peerOf(stage.stage(), shared);
                StageProgram here = stages.get(peer);
                if (here == null) {
                    var exchange =
                            new SharedGradientExchange(
                                    rank, plan, stage.stage(), shared, boundary, device.kernels());
                    inbound.add(exchange.inbound());
                    exchange.outbound().forEach(outbound::add);
                    add(exchanges, stage.stage(), exchange);
                } else if (stage.stage() < peer) {
                    var sum = new LocalGradientSum(shared, named(here, shared), device.kernels());
                    add(exchanges, stage.stage(), sum);
                    add(exchanges, peer, sum);
                }
            }
        }
        return exchanges;
    }

    private static void add(
            Map<Integer, List<GradientExchange>> exchanges, int stage, GradientExchange exchange) {
        exchanges.computeIfAbsent(stage, _ -> new ArrayList<>()).add(exchange);
    }

    private static SharedGradient named(StageProgram stage, SharedGradient other) {
        return stage.sharedGradients().stream()
                .filter(shared -> shared.name().equals(other.name()))
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalStateException(
                                        "stage %d does not know that it shares %s"
                                                .formatted(stage.stage(), other.name())));
    }

    /** Afterwards {@link #sentInPass} counts from here. */
    void beginPass() {
        sentBefore = groups.sent();
    }

    /**
     * What this rank has sent to the members of its groups in the pass, of outer gradients since
     * this was last asked for.
     *
     * @param apart whether replicas exchange nothing else
     */
    StepTraffic sentInPass(boolean apart) {
        StepTraffic now = groups.sent();
        long toReplicas = now.parameterGathers() + now.gradientSums();
        long news = toReplicas - toldOfReplicas;
        toldOfReplicas = toReplicas;
        StepTraffic sent = now.minus(sentBefore);
        return apart ? sent.apart(news) : sent;
    }

    @Override
    public void close() {
        close(groups, endpoint);
    }

    /**
     * The endpoint first: the poller writes into the slots until it is closed, peers copy to them.
     */
    private void close(@Nullable RankGroups joined, @Nullable Endpoint opened) {
        try (joined;
                direct) {
            if (opened != null) {
                opened.close();
            }
        } finally {
            mirrorBlocks.close();
            boundary.close();
            blocks.close();
        }
    }
}
