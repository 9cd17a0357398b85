@NullMarked
package dev.penstock.cuda.nccl;

import org.jspecify.annotations.NullMarked;
