package dev.penstock.runtime.data.labelled;

/**
 * One text or two as a classifier reads them (Devlin et al., arXiv 1810.04805, figure 2).
 *
 * <pre>
 *   tokens   [CLS] a a a [SEP] b b [SEP]
 *   types      0   0 0 0   0   1 1   1         second = 5
 * </pre>
 *
 * @param second index of the first token of the second type; the number of tokens if there is none
 * @param label number of the class; {@link #UNKNOWN} where the line names none
 */
public record LabelledRow(int[] tokens, int second, int label) {
    /** In place of a label that is not known. */
    public static final int UNKNOWN = -1;
}
