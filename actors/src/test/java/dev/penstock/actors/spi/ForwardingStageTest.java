package dev.penstock.actors.spi;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Method;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class ForwardingStageTest {
    /** A default that is not forwarded would silently take the place of what the stage does. */
    @Test
    void everyMethodOfAStageIsForwarded() {
        assertThat(StageProgram.class.getMethods())
                .allSatisfy(
                        method ->
                                assertThat(ForwardingStage.class.getDeclaredMethods())
                                        .anyMatch(declared -> isSame(declared, method)));
    }

    private static boolean isSame(Method one, Method other) {
        return one.getName().equals(other.getName())
                && Arrays.equals(one.getParameterTypes(), other.getParameterTypes());
    }
}
