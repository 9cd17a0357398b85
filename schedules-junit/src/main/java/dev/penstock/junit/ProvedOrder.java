package dev.penstock.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.TestTemplate;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A test that proves an order before its body runs: it is complete, respects every dependency and
 * cannot hang. It fails with everything that is wrong, each with its line and column. The proof is
 * that of {@code penstock schedule validate}: an order of computations alone is judged as it is
 * written, then with its transfers and with as many buffers as it needs.
 *
 * {@snippet file="dev/penstock/junit/ProvedOrderTest.java" region="example"}
 *
 * <p>The test may take the {@link dev.penstock.schedules.ir.Schedule} that was read and the {@link
 * dev.penstock.schedules.validate.ValidationReport} of what would run.
 */
@Documented
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@TestTemplate
@ExtendWith(ProvedOrders.class)
public @interface ProvedOrder {
    /**
     * A file, relative to the working directory, which is the module's folder under Maven and
     * Gradle; or a glob such as {@code "orders/*.txt"} for a test of each. {@code .csv} is
     * PyTorch's form, all else Penstock's text.
     */
    String value();

    /** Tensors that may be under way between two stages; 0: as many as the order needs. */
    int buffers() default 0;

    /**
     * The most units of work (stage, micro-batch, slice) whose activations a rank may hold at a
     * time; 0: any number.
     */
    int peakUnits() default 0;
}
