package dev.penstock.runtime.config.run;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Which device a rank opens.
 *
 * @param word as it is written: {@code auto}, {@code cpu}, {@code reference}, {@code cuda} or
 *     {@code cuda:1}
 */
public record DeviceKind(String word) {
    /** What device the machine's release prefers. */
    public static final DeviceKind AUTO = new DeviceKind("auto");

    /** The processor. */
    public static final DeviceKind CPU = new DeviceKind("cpu");

    /** The processor by plain scalar code: slow, for comparison. */
    public static final DeviceKind REFERENCE = new DeviceKind("reference");

    private static final String CUDA = "cuda";
    private static final Pattern ONE_GPU = Pattern.compile(CUDA + ":(\\d{1,4})");

    /** Whether this is written the way that a kind is. */
    public static boolean isKind(String word) {
        return word.equals(AUTO.word)
                || word.equals(CPU.word)
                || word.equals(REFERENCE.word)
                || word.equals(CUDA)
                || ONE_GPU.matcher(word).matches();
    }

    /** Whether GPUs are wanted. */
    public boolean isCuda() {
        return word.startsWith(CUDA);
    }

    /** The GPU that all ranks of this machine share; empty: each rank takes the next one. */
    public Optional<Integer> gpu() {
        Matcher matcher = ONE_GPU.matcher(word);
        return matcher.matches()
                ? Optional.of(Integer.parseInt(matcher.group(1)))
                : Optional.empty();
    }
}
