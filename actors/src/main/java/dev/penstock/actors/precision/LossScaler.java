package dev.penstock.actors.precision;

import java.util.Optional;

/**
 * The state of a loss scaler after a step, by the rules of Megatron-LM's {@code DynamicGradScaler}
 * ({@code megatron/core/optimizer/grad_scaler.py}), which extend those of Micikevicius et al.,
 * Mixed Precision Training (arXiv 1710.03740, section 3.2):
 *
 * <pre>
 *   overflow   growth = 0;  hysteresis -= 1;  if hysteresis &lt;= 0: scale = max(scale / 2, 1)
 *   else       growth += 1; if growth == window: growth = 0, hysteresis = its first value, scale *= 2
 * </pre>
 *
 * The hysteresis returns only when the scale doubles: once it is used up, every overflow halves the
 * scale, however far apart they are, and it falls below 0. The scale stays at 2^126 once it is
 * there.
 *
 * @param scale what the loss of the next step is multiplied by
 * @param growth steps without an overflow since the last one with it, or since the scale doubled
 * @param hysteresis overflows that are left before each one halves the scale; 0 or less: none
 * @param skipped steps with an overflow since the run began
 * @param stuck how many of the last steps in a row overflowed although the scale was the least
 */
public record LossScaler(
        LossScaling rules, double scale, int growth, int hysteresis, long skipped, int stuck) {
    /** A smaller scale is no remedy when so many steps in a row overflow with the least one. */
    public static final int HOPELESS = 10;

    /** Returns the state before the first step. */
    public static LossScaler first(LossScaling rules) {
        return new LossScaler(rules, rules.initial(), 0, rules.hysteresis(), 0, 0);
    }

    /** Returns the state after one more step. */
    public LossScaler after(boolean overflow) {
        if (overflow) {
            int left = hysteresis - 1;
            double next = left <= 0 ? Math.max(scale / 2, rules.least()) : scale;
            int stuckNow = scale == rules.least() ? stuck + 1 : 0;
            return new LossScaler(rules, next, 0, left, skipped + 1, stuckNow);
        }
        if (!rules.dynamic()) {
            return new LossScaler(rules, scale, 0, hysteresis, skipped, 0);
        }
        return growth + 1 == rules.window()
                ? new LossScaler(
                        rules,
                        Math.min(scale * 2, LossScaling.MOST),
                        0,
                        rules.hysteresis(),
                        skipped,
                        0)
                : new LossScaler(rules, scale, growth + 1, hysteresis, skipped, 0);
    }

    /** Returns whether overflows are no longer a matter of the scale. */
    public boolean isStuck() {
        return stuck >= HOPELESS;
    }

    /** Returns the state, without the rules, as words of one line. */
    public String text() {
        return "%s %d %d %d %d"
                .formatted(Double.toHexString(scale), growth, hysteresis, skipped, stuck);
    }

    /**
     * Returns what {@link #text} wrote, under these rules; the first state, with the number of
     * skipped steps, where the rules have another scale that never changes.
     *
     * @return empty if it is no such text
     */
    public static Optional<LossScaler> parse(LossScaling rules, String text) {
        String[] words = text.split(" ", -1);
        if (words.length != 5) {
            return Optional.empty();
        }
        try {
            double scale = Double.parseDouble(words[0]);
            if (!LossScaling.isScale(scale)) {
                return Optional.empty();
            }
            return Optional.of(
                    new LossScaler(
                            rules,
                            rules.dynamic() ? scale : rules.initial(),
                            Integer.parseInt(words[1]),
                            Integer.parseInt(words[2]),
                            Long.parseLong(words[3]),
                            Integer.parseInt(words[4])));
        } catch (NumberFormatException e) {
            return Optional.empty();
        }
    }
}
