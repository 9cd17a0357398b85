package dev.penstock.schedules.simulate.apart;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.simulate.Timeline;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * How long an order takes on replicas that take steps alone and exchange their parameters, fragment
 * by fragment. An exchange begins at the end of a step, and a rank computes nothing of the step
 * behind the lag before it is done. That step then begins later, for all ranks by the wait of the
 * one that has least time: a rank that is reached late has its exchange done by then.
 *
 * <pre>
 *   link       | exchange .................|
 *   rank 0     | step, lag 1     | waits   | F ..
 *   rank 1     | step            | waits      F ..     idles there in any step
 * </pre>
 *
 * @param alone nanoseconds of a step that waits for no exchange
 * @param behind by fragment: nanoseconds of the step that waits for its exchange
 * @param mean nanoseconds of a step on average, between two turns of a fragment
 */
public record ExchangingSteps(long alone, List<Long> behind, double mean) {
    public ExchangingSteps {
        behind = List.copyOf(behind);
    }

    /**
     * Returns the times of an order's steps.
     *
     * @param step one that waits for no exchange
     * @param exchanges entry [f][r] is how long that of fragment f takes on rank r
     * @param every steps between two turns of a fragment
     * @param lag steps that are taken while an exchange is under way
     */
    public static ExchangingSteps of(Timeline step, long[][] exchanges, int every, int lag) {
        long alone = step.makespanNanos();
        List<Long> behind =
                Arrays.stream(exchanges)
                        .map(exchange -> alone + wait(step, exchange, lag * alone))
                        .toList();
        long longer = behind.stream().mapToLong(nanos -> nanos - alone).sum();
        return new ExchangingSteps(alone, behind, alone + (double) longer / every);
    }

    private static long wait(Timeline step, long[] exchange, long hidden) {
        long wait = 0;
        for (int rank = 0; rank < exchange.length; rank++) {
            long left = exchange[rank] - hidden - firstComputation(step, rank);
            wait = Math.max(wait, left);
        }
        return wait;
    }

    private static long firstComputation(Timeline step, int rank) {
        List<Op> ops = step.schedule().program(rank).ops();
        return IntStream.range(0, ops.size())
                .filter(i -> !ops.get(i).computations().isEmpty())
                .mapToLong(i -> step.startNanos(rank, i))
                .findFirst()
                .orElse(0);
    }
}
