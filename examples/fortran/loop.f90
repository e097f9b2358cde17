! Trains a net inside a program, on samples that the program computes.
!   loop [CHECKPOINT]
! ampc makes the module surrogate, and surrogate.c, from surrogate.amp.
program loop
  use, intrinsic :: iso_c_binding
  use surrogate
  implicit none
  integer, parameter :: steps = 2000, n = surrogate_step_samples
  real(c_float) :: x(3, n), y(1, n), answers(1, n)
  type(c_ptr) :: net
  type(surrogate_metrics) :: mean
  character(len=200) :: path
  integer :: step

  call check(surrogate_create("auto", 1_c_int64_t, rt=net))
  do step = 1, steps
    call draw()
    call check(surrogate_step(net, surrogate_step_samples, x, y))
    if (mod(step, 500) == 0) then
      call check(surrogate_get_metrics(net, mean))
      print "(a, i0, a, f7.5)", "step ", step, ": loss ", mean%loss
    end if
  end do

  call draw()
  call check(surrogate_predict(net, x, answers))
  print "(a, f7.5)", "mean error ", sum(abs(answers - y)) / n
  call get_command_argument(1, path)
  if (path /= "") call check(surrogate_save(net, path))
  call surrogate_close(net)

contains

  ! What the net learns: a function that would cost much more in a real program.
  elemental real(c_float) function costly(a, b, c)
    real(c_float), intent(in) :: a, b, c
    costly = sin(3 * a) * cos(2 * b) + c**2
  end function

  subroutine draw()
    call random_number(x)
    x = 2 * x - 1
    y(1, :) = costly(x(1, :), x(2, :), x(3, :))
  end subroutine

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status == 0) return
    print "(a)", surrogate_error()
    stop 1
  end subroutine
end program
