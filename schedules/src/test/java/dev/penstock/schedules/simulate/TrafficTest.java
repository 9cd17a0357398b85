package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.Traffic.Volume;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;

class TrafficTest {
    /** Slices differ in length, and the two directions differ as well. */
    private static long bytes(Channel channel, WorkUnit unit) {
        return 100L * (unit.slice() + 1) + (channel.forward() ? 1 : 2);
    }

    private static Volume all(Traffic traffic) {
        return traffic.links().stream()
                .map(Traffic.OfLink::volume)
                .reduce(new Volume(0, 0), Volume::plus);
    }

    @Test
    void agreesWithCountingTheSends() {
        RandomOrders.some(200)
                .forEach(
                        order -> {
                            Schedule lowered = Lowering.lower(order);

                            Traffic traffic = Traffic.of(lowered, TrafficTest::bytes);

                            assertThat(Traffic.of(order, TrafficTest::bytes)).isEqualTo(traffic);
                            List<Op.Transfer> sends = sends(lowered);
                            assertThat(all(traffic)).isEqualTo(volume(sends, _ -> true));
                            for (Traffic.OfChannel of : traffic.channels()) {
                                assertThat(of.volume())
                                        .isEqualTo(
                                                volume(
                                                        sends,
                                                        s -> channel(s).equals(of.channel())));
                            }
                            for (Traffic.OfRank of : traffic.ranks()) {
                                IntPredicate here =
                                        stage -> order.placement().rankOf(stage) == of.rank();
                                assertThat(of.sent())
                                        .isEqualTo(volume(sends, s -> here.test(s.stage())));
                                assertThat(of.received())
                                        .isEqualTo(
                                                volume(
                                                        sends,
                                                        s -> here.test(channel(s).toStage())));
                            }
                        });
    }

    private static List<Op.Transfer> sends(Schedule lowered) {
        return lowered.programs().stream()
                .flatMap(program -> program.ops().stream())
                .filter(op -> op instanceof Op.SendActivation || op instanceof Op.SendGradient)
                .map(Op.Transfer.class::cast)
                .toList();
    }

    private static Channel channel(Op.Transfer send) {
        int to = send instanceof Op.SendActivation ? send.stage() + 1 : send.stage() - 1;
        return new Channel(send.stage(), to);
    }

    private static Volume volume(List<Op.Transfer> sends, Predicate<Op.Transfer> counts) {
        List<Op.Transfer> counted = sends.stream().filter(counts).toList();
        return new Volume(
                counted.size(), counted.stream().mapToLong(s -> bytes(channel(s), s.unit())).sum());
    }

    @Test
    void of1f1bIsATensorEachWayPerMicroBatchAndHop() {
        Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(4, 8));

        Traffic traffic = Traffic.of(schedule, (_, _) -> 10);

        assertThat(all(traffic)).isEqualTo(new Volume(2 * 3 * 8, 480));
        assertThat(traffic.links())
                .hasSize(6)
                .contains(new Traffic.OfLink(1, 2, new Volume(8, 80)))
                .extracting(Traffic.OfLink::fromRank)
                .containsExactly(0, 1, 1, 2, 2, 3);
        assertThat(traffic.ranks().get(0))
                .isEqualTo(new Traffic.OfRank(0, new Volume(8, 80), new Volume(8, 80), 0, 0));
        assertThat(traffic.ranks().get(1).sent()).isEqualTo(new Volume(16, 160));
    }

    @Test
    void channelsBetweenTheSameRanksShareALinkAndCollectivesAreCounted() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 2
                        chunks: 2
                        micro-batches: 1
                        rank 0: 0UNSHARD 0F0 2F0 2B0 0B0 0REDUCE_GRAD 2REDUCE_GRAD
                        rank 1: 1F0 (3F0;1B0)OVERLAP_F_B 9F0
                        """);

        Traffic traffic = Traffic.of(schedule, (_, _) -> 1);

        assertThat(traffic.channels())
                .extracting(Traffic.OfChannel::channel)
                .containsExactly(
                        new Channel(0, 1),
                        new Channel(1, 0),
                        new Channel(1, 2),
                        new Channel(2, 1),
                        new Channel(2, 3));
        assertThat(traffic.links())
                .containsExactly(
                        new Traffic.OfLink(0, 1, new Volume(3, 3)),
                        new Traffic.OfLink(1, 0, new Volume(2, 2)));
        assertThat(traffic.ranks().getFirst().gathers()).isEqualTo(1);
        assertThat(traffic.ranks().getFirst().reductions()).isEqualTo(2);
    }
}
