package dev.penstock.runtime.config.links;

import dev.penstock.runtime.config.reading.Mismatch;
import java.math.BigDecimal;

/**
 * The share of a link's frames that are lost.
 *
 * @param share from 0 to 1
 */
public record FrameLoss(double share) implements Comparable<FrameLoss> {
    /**
     * Reads text such as {@code 1 %} or {@code 0.01}.
     *
     * @throws Mismatch if it is no such share
     */
    public static FrameLoss parse(String text) {
        String written = text.strip();
        boolean percent = written.endsWith("%");
        try {
            var number =
                    new BigDecimal(
                            percent ? written.substring(0, written.length() - 1).strip() : written);
            return new FrameLoss((percent ? number.movePointLeft(2) : number).doubleValue());
        } catch (NumberFormatException e) {
            throw new Mismatch("", "write for example 1 %, or 0.01");
        }
    }

    @Override
    public int compareTo(FrameLoss other) {
        return Double.compare(share, other.share);
    }

    /** In percent: {@code 0.5 %}. */
    @Override
    public String toString() {
        BigDecimal percent = BigDecimal.valueOf(share).movePointRight(2).stripTrailingZeros();
        return percent.toPlainString() + " %";
    }
}
