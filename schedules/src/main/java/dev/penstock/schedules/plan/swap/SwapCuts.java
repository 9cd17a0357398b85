package dev.penstock.schedules.plan.swap;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * Cuts parts into segments so that a step is as short as possible, by a dynamic programme: what a
 * segment costs depends on itself and on the one before.
 *
 * <pre>
 *   T(i, j) = the shortest time of parts 0..j-1 of which the last segment is i..j-1
 *   T(i, j) = min over h of T(h, i) + forward(h..i, i..j) + backward(h..i, i..j)
 * </pre>
 */
public final class SwapCuts {
    private final List<SwapPart> parts;
    private final SwapStep step;
    private final long roomBytes;

    /**
     * @param roomBytes for two neighbours and the gradients of the larger one
     */
    public SwapCuts(List<SwapPart> parts, SwapStep step, long roomBytes) {
        this.parts = List.copyOf(parts);
        this.step = step;
        this.roomBytes = roomBytes;
    }

    /**
     * How many parts each segment has.
     *
     * @param segments 2 or more
     * @return empty where no cut fits into the room
     */
    public Optional<List<Integer>> into(int segments) {
        int n = parts.size();
        if (segments < 2 || segments > n) {
            return Optional.empty();
        }
        double[][] best = new double[n + 1][n + 1];
        int[][][] from = new int[segments + 1][n + 1][n + 1];
        fill(best);
        for (int end = 1; end < n; end++) {
            SwapPart first = segment(0, end);
            best[0][end] = first.load() + step.first(first);
        }
        for (int count = 2; count <= segments; count++) {
            best = extended(best, from[count]);
        }
        int start = 0;
        for (int i = 1; i < n; i++) {
            best[i][n] += step.last(segment(i, n));
            start = start == 0 || best[i][n] < best[start][n] ? i : start;
        }
        return best[start][n] == Double.POSITIVE_INFINITY
                ? Optional.empty()
                : Optional.of(sizes(from, segments, start));
    }

    private double[][] extended(double[][] shorter, int[][] from) {
        int n = parts.size();
        double[][] longer = new double[n + 1][n + 1];
        fill(longer);
        for (int h = 0; h < n; h++) {
            for (int i = h + 1; i < n; i++) {
                for (int j = i + 1; j <= n && shorter[h][i] < Double.POSITIVE_INFINITY; j++) {
                    double time = shorter[h][i] + between(segment(h, i), segment(i, j));
                    if (time < longer[i][j]) {
                        longer[i][j] = time;
                        from[i][j] = h;
                    }
                }
            }
        }
        return longer;
    }

    private double between(SwapPart segment, SwapPart next) {
        long held = segment.bytes() + next.bytes() + Math.max(segment.bytes(), next.bytes());
        return held > roomBytes
                ? Double.POSITIVE_INFINITY
                : step.forward(segment, next) + step.backward(segment, next);
    }

    private SwapPart segment(int from, int to) {
        return SwapPart.together(parts.subList(from, to));
    }

    private static List<Integer> sizes(int[][][] from, int segments, int last) {
        int end = from[0].length - 1;
        int start = last;
        List<Integer> sizes = new ArrayList<>();
        for (int count = segments; count > 1; count--) {
            sizes.addFirst(end - start);
            int before = from[count][start][end];
            end = start;
            start = before;
        }
        sizes.addFirst(end - start);
        return sizes;
    }

    private static void fill(double[][] times) {
        for (double[] row : times) {
            Arrays.fill(row, Double.POSITIVE_INFINITY);
        }
    }
}
