# wake: gives a machine that was resumed from a snapshot its time and its randomness.
#
# Standard input is a struct timespec (two 64-bit numbers: seconds and nanoseconds since
# 1970) and then 64 to 512 bytes of seed. The clock is set, the seed is credited to the
# kernel's generator, and the generator is told to use it at once: until then all machines
# of a snapshot draw the same numbers. No shell can do the latter, so there is this
# program; it needs neither libraries nor a compiler in the image.
#
# Exit status: 0 done; 1 the clock cannot be set; 2 not enough seed; 3 no generator;
# 4 the seed is refused; 5 the generator does not take it up.
#
# The whole file is written here, ELF header included, so that every version of
# binutils makes the same bytes of it (src/assemble).

        .set    base, 0x400000
        .set    sys_read, 0
        .set    sys_open, 2
        .set    sys_ioctl, 16
        .set    sys_exit, 60
        .set    sys_clock_settime, 227
        .set    RNDADDENTROPY, 0x40085203
        .set    RNDRESEEDCRNG, 0x5207
        .set    least, 64
        .set    most, 512

        .text
        .globl  _start
header: .byte   0x7f, 'E', 'L', 'F', 2, 1, 1, 0         # 64 bits, little endian
        .quad   0
        .word   2, 62                                   # executable, x86-64
        .long   1
        .quad   _start, program - header, 0             # entry, program headers, no sections
        .long   0
        .word   64, 56, 1, 0, 0, 0
program:
        .long   1, 5                                    # load; read and execute
        .quad   0, base, base, end - header, end - header, 0x1000

_start: sub     $16 + 8 + most, %rsp                    # timespec, two words of rand_pool_info, seed
        xor     %ebx, %ebx                              # bytes so far
        # The seed lies 8 bytes behind the timespec, so the timespec is read for itself.
time:   mov     $16, %edx
        sub     %ebx, %edx
        jz      set
        lea     (%rsp, %rbx), %rsi
        call    fill
        jnz     time
        mov     $2, %edi                                # the input ended
        jmp     exit
set:    xor     %edi, %edi                              # CLOCK_REALTIME
        mov     %rsp, %rsi
        mov     $sys_clock_settime, %eax
        syscall
        mov     $1, %edi
        test    %rax, %rax
        jnz     exit

        xor     %ebx, %ebx
seed:   mov     $most, %edx
        sub     %ebx, %edx
        jz      full
        lea     24(%rsp, %rbx), %rsi
        call    fill
        jnz     seed
full:   mov     $2, %edi
        cmp     $least, %ebx
        jb      exit
        mov     %ebx, 20(%rsp)                          # bytes
        shl     $3, %ebx
        mov     %ebx, 16(%rsp)                          # bits of entropy

        lea     device(%rip), %rdi
        mov     $2, %esi                                # O_RDWR
        xor     %edx, %edx
        mov     $sys_open, %eax
        syscall
        mov     $3, %edi
        test    %rax, %rax
        js      exit
        mov     %eax, %ebp
        mov     %ebp, %edi
        mov     $RNDADDENTROPY, %esi
        lea     16(%rsp), %rdx
        mov     $sys_ioctl, %eax
        syscall
        mov     $4, %edi
        test    %rax, %rax
        jnz     exit
        mov     %ebp, %edi
        mov     $RNDRESEEDCRNG, %esi
        xor     %edx, %edx
        mov     $sys_ioctl, %eax
        syscall
        mov     $5, %edi
        test    %rax, %rax
        jnz     exit
        xor     %edi, %edi
exit:   mov     $sys_exit, %eax
        syscall

# fill reads up to rdx bytes to rsi and adds their number to rbx. Zero flag: there are no more.
fill:   xor     %edi, %edi
        mov     $sys_read, %eax
        syscall
        test    %rax, %rax
        jle     none
        add     %rax, %rbx
        test    %rax, %rax
        ret
none:   xor     %eax, %eax
        ret

device: .asciz  "/dev/urandom"
end:
