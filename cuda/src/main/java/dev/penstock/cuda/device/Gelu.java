package dev.penstock.cuda.device;

/** Which function is called GELU. */
public enum Gelu {
    /** {@code x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))}, as in GPT-2. */
    TANH,
    /** {@code x/2 (1 + erf(x / sqrt(2)))}. */
    EXACT
}
